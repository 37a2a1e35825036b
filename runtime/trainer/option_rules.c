/* runtime/trainer/option_rules.c -- which of the trainer's options go together, and with what the
 * compiler fixed. */
#include "runtime/engine/program_memory.h"
#include "runtime/trainer/checkpoint_folder.h"
#include "runtime/trainer/export_narrow.h"
#include "runtime/trainer/find_rate.h"
#include "runtime/trainer/trainer_options.h"
#include "runtime/watch/grad_norm.h"

#include <inttypes.h>
#include <string.h>

/* What private training adds to the rules. */
static bool fits_privacy(const LsTrainerOptions *o, const LsProgram *p, LsError *e)
{
    if (!ls_is_private(p))
        return (o->noise_seed < 0 && o->check_clip < 0)
               || ls_fail(e, LS_EXIT_USAGE,
                          "--%s: this program adds no noise; compile with lowerset compile --dp",
                          o->noise_seed < 0 ? "check-clip" : "noise-seed");
    if (o->order_given && !o->eval)
        return ls_fail(
            e, LS_EXIT_USAGE,
            "--shuffle, --no-shuffle, --shuffle-seed and --drop-last: private training draws the "
            "samples of every update at random, whatever their order");
    return !o->check_gradients
           || ls_fail(e, LS_EXIT_USAGE,
                      "--check-gradients: private gradients are clipped and noisy; "
                      "check a program that was compiled without --dp");
}

const char *ls_rank_numbers(const LsRanks *r, char text[LS_RANK_NUMBERS])
{
    int n = 0;
    for (int k = 0; k < r->nchoice && n < LS_RANK_NUMBERS; k++)
        n += snprintf(text + n, (size_t)(LS_RANK_NUMBERS - n), "%s%d",
                      k == 0               ? ""
                      : k + 1 < r->nchoice ? ", "
                                           : " or ",
                      r->choice[k].ranks);
    if (n < LS_RANK_NUMBERS)
        snprintf(text + n, (size_t)(LS_RANK_NUMBERS - n), " ranks");
    return text;
}

/* What ranks add. */
static bool fits_stage_ranks(const LsTrainerOptions *o, const LsProgram *p, LsError *e)
{
    const char *one = o->compare_replicas != LS_COMPARE_REPLICAS ? "--compare-replicas"
                      : o->bucket                                ? "--bucket"
                      : o->late_exchange                         ? "--late-exchange"
                      : o->share_gpus                            ? "--share-gpus"
                      : o->eval                                  ? "--eval"
                      : o->check_numerics                        ? "--check-numerics"
                                                                 : NULL;
    if (o->comm && strcmp(o->comm, "nccl") == 0)
        return ls_fail(
            e, LS_EXIT_USAGE,
            "--comm=nccl: this program runs on no GPU; local, sockets and mpi carry its messages");
    if (o->ranks > 1 && o->ranks != p->pipeline.nstage)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--ranks=%" PRId64
                       ": the pipeline of this program has %u stages; compile again with "
                       "lowerset compile --stages",
                       o->ranks, p->pipeline.nstage);
    return one == NULL
           || ls_fail(
               e, LS_EXIT_USAGE,
               "%s: stages that are processes see only their own values; leave --ranks, --comm "
               "and --peers out, and they are threads",
               one);
}

static bool fits_ranks(const LsTrainerOptions *o, const LsProgram *p, LsError *e)
{
    const char *of = o->bucket                                    ? "--bucket"
                     : o->late_exchange                           ? "--late-exchange"
                     : o->ranks > 1                               ? "--ranks"
                     : o->peers                                   ? "--peers"
                     : o->rank >= 0                               ? "--rank"
                     : o->token_file                              ? "--token-file"
                     : o->compare_replicas != LS_COMPARE_REPLICAS ? "--compare-replicas"
                     : o->comm                                    ? "--comm"
                     : o->share_gpus                              ? "--share-gpus"
                                                                  : NULL;
    const char *gpu = o->share_gpus                             ? "--share-gpus"
                      : o->comm && strcmp(o->comm, "nccl") == 0 ? "--comm=nccl"
                                                                : NULL;
    if (p->pipeline.nstage > 0 && of != NULL)
        return fits_stage_ranks(o, p, e);
    if (p->ranks == NULL)
        return of == NULL
               || ls_fail(e, LS_EXIT_USAGE,
                          "%s: this program is for one process; compile with lowerset compile "
                          "--ranks",
                          of);
    char numbers[LS_RANK_NUMBERS];
    if (o->ranks && ls_rank_choice(p->ranks, o->ranks) == NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--ranks=%" PRId64
                       ": this program is for %s; compile again with lowerset compile "
                       "--ranks",
                       o->ranks, ls_rank_numbers(p->ranks, numbers));
    if (o->eval && of != NULL && o->ranks == 0)
        return ls_fail(e, LS_EXIT_USAGE, "%s: evaluation runs in one process", of);
    if (gpu != NULL && p->accelerator.ranks == NULL)
        return ls_fail(
            e, LS_EXIT_USAGE,
            "%s: this program runs on no GPU; compile with lowerset compile --target=cuda", gpu);
    if (o->tune && p->accelerator.ranks != NULL && o->ranks != 1 && !o->eval)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--tune: ranks must choose the same kernels, and their clocks differ; tune "
                       "a program without "
                       "--ranks, or with --ranks 1: choices are kept, for ranks too");
    const char *one = o->check_gradients ? "--check-gradients" : o->measure ? "--measure" : NULL;
    return one == NULL
           || ls_fail(e, LS_EXIT_USAGE, "%s is for one process: compile without --ranks", one);
}

/* What ensembles add. */
static bool fits_ensemble(const LsTrainerOptions *o, const LsProgram *p, LsError *e)
{
    const char *of = o->ensemble_seed >= 0   ? "--ensemble-seed"
                     : o->ensemble_weights   ? "--ensemble-weights"
                     : o->member_rates       ? "--member-rates"
                     : o->member_seeds       ? "--member-seeds"
                     : o->export_member >= 0 ? "--export-member"
                                             : NULL;
    if (p->ensemble.members == 0)
        return of == NULL
               || ls_fail(e, LS_EXIT_USAGE,
                          "%s: this program is one model; compile with lowerset compile "
                          "--ensemble",
                          of);
    if (o->ensemble_seed >= 0 && o->ensemble_weights)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--ensemble-seed and --ensemble-weights both set the initial weights");
    if (o->export_to && o->export_member < 0)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--export writes one model of the %" PRId64 ": name it with --export-member",
                       p->ensemble.members);
    const bool exports =
        o->export_to != NULL || o->export_adapter != NULL || o->save_weights != NULL;
    if (o->export_member >= p->ensemble.members || (o->export_member >= 0 && !exports))
        return ls_fail(e, LS_EXIT_USAGE,
                       exports ? "--export-member=%" PRId64
                                 ": members are numbered from 0 to %" PRId64
                               : "--export-member is for --export FILE, --export-adapter DIR and "
                                 "--save-weights FILE, and none is given",
                       o->export_member, p->ensemble.members - 1);
    const char *one = o->check_gradients ? "--check-gradients"
                      : o->image_grid    ? "--image-grid"
                      : o->trace         ? "--trace"
                      : o->profile       ? "--profile"
                                         : NULL;
    if (one != NULL)
        return ls_fail(e, LS_EXIT_USAGE, "%s is for one model: compile without --ensemble", one);
    return !o->member_rates || o->lr == p->defaults.lr
           || ls_fail(e, LS_EXIT_USAGE, "--lr and --member-rates both set the learning rate");
}

/* Steps of a pipeline are in the tables of its stages. */
static bool fits_pipeline(const LsTrainerOptions *o, const LsProgram *p, LsError *e)
{
    const char *one = o->check_gradients ? "--check-gradients" : o->measure ? "--measure"
        : NULL;
    return p->pipeline.nstage == 0 || one == NULL
           || ls_fail(e, LS_EXIT_USAGE,
                      "%s is for programs without a pipeline so far: compile without --stages",
                      one);
}

/* What a search for a rate leaves out. */
static bool fits_find_rate(const LsTrainerOptions *o, const LsProgram *p, LsError *e)
{
    double low, high;
    const char *of = o->rate_range ? "--rate-range" : o->rate_table ? "--rate-table" : NULL;
    if (!o->find_rate)
        return of == NULL
               || ls_fail(e, LS_EXIT_USAGE, "%s is for --find-rate, which is not given", of);
    if (o->find_rate > 0 && o->find_rate < 10)
        return ls_fail(e, LS_EXIT_USAGE, "--find-rate=%" PRId64 ": it takes at least 10 updates",
                       o->find_rate);
    const char *no = o->eval                  ? "--eval"
                     : o->check_gradients     ? "--check-gradients"
                     : o->epochs > 0          ? "--epochs"
                     : o->steps               ? "--steps"
                     : o->member_rates        ? "--member-rates"
                     : o->lr != p->defaults.lr ? "--lr"
                                              : NULL;
    if (no != NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--find-rate and %s do not go together: it runs its own number of updates, "
                       "with rates of its own",
                       no);
    if (ls_is_private(p))
        return ls_fail(e, LS_EXIT_USAGE,
                       "--find-rate: its updates would read the private data, and no guarantee "
                       "would count them; find a rate on public data, with a program compiled "
                       "without --dp");
    const char *file = o->export_adapter ? "--export-adapter"
                       : o->tensorboard  ? "--tensorboard"
                                         : NULL;
    for (int k = 0; k < ls_trainer_table.n && file == NULL; k++) {
        const char *name = ls_trainer_table.row[k].name;
        if (ls_trainer_output(o, k) && strcmp(name, "--log") != 0
            && strcmp(name, "--rate-table") != 0)
            file = name;
    }
    if (file != NULL)
        return ls_fail(e, LS_EXIT_USAGE, "--find-rate trains nothing that %s could write", file);
    return ls_find_rate_range(o->rate_range, &low, &high, e);
}

/* Which weights --save-weights writes. */
static bool fits_weights_of(const LsTrainerOptions *o, const LsProgram *p, LsError *e)
{
    bool averages = false;
    for (uint32_t k = 0; k < p->nstate; k++)
        averages |= p->state[k].kind == LS_STATE_AVERAGE;
    if (!o->weights_of)
        return true;
    if (strcmp(o->weights_of, "average") != 0 && strcmp(o->weights_of, "trained") != 0)
        return ls_fail(e, LS_EXIT_USAGE, "--weights-of=%s: must be average or trained",
                       o->weights_of);
    if (!o->save_weights)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--weights-of is for --save-weights FILE, which is not given");
    return averages
           || ls_fail(e, LS_EXIT_USAGE,
                      "--weights-of: this program keeps no averages; compile with --ema");
}

/* What there must be to evaluate on. */
static bool fits_validation(const LsTrainerOptions *o, const LsProgram *p, LsError *e)
{
    const bool evaluates = o->val || o->val_split;
    if (o->val_split && o->val)
        return ls_fail(e, LS_EXIT_USAGE, "--val-split and --val both give data to evaluate on");
    if (o->val_split && p->phase.eval.nstep == 0)
        return ls_fail(e, LS_EXIT_USAGE, "this program has no evaluation form (--val-split)");
    const char *of = o->val_every           ? "--val-every"
                     : o->keep_best         ? "--keep-best"
                     : o->patience          ? "--patience"
                     : o->limit_val_batches ? "--limit-val-batches"
                                            : NULL;
    if (of != NULL && !evaluates && !(o->eval && o->limit_val_batches))
        return ls_fail(e, LS_EXIT_USAGE,
                       "%s: nothing is evaluated; give --val SPEC, or --val-split 10%%", of);
    if (o->keep_best && !o->save)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--keep-best keeps a checkpoint in --save DIR, which is not given");
    if (o->min_delta > 0 && !o->patience)
        return ls_fail(e, LS_EXIT_USAGE, "--min-delta is for --patience N, which is not given");
    const bool exports = o->export_to || o->export_adapter || o->save_weights;
    if (o->export_best && (!o->keep_best || !exports))
        return ls_fail(e, LS_EXIT_USAGE, "--export-best: %s",
                       o->keep_best ? "there is nothing to export; give --export FILE"
                                    : "no best model is kept; give --keep-best METRIC");
    const char *trains = o->val_every       ? "--val-every"
                         : o->keep_best     ? "--keep-best"
                         : o->patience      ? "--patience"
                         : o->limit_batches ? "--limit-batches"
                                            : NULL;
    return !o->eval || trains == NULL
           || ls_fail(e, LS_EXIT_USAGE, "%s: --eval trains nothing", trains);
}

static bool fits_order(const LsTrainerOptions *o, LsError *e)
{
    if (o->shuffle_seed >= 0 && o->eval)
        return ls_fail(e, LS_EXIT_USAGE, "--shuffle-seed: --eval takes the data in their order");
    return o->shuffle_seed < 0 || o->shuffle
           || ls_fail(e, LS_EXIT_USAGE,
                      "--shuffle-seed and --no-shuffle: data in file order need no seed");
}

/* What is drawn for the samples of training. */
static bool fits_augmentation(LsTrainerOptions *o, LsError *e)
{
    const char *of = o->augment ? "--augment" : o->random_windows ? "--random-windows" : NULL;
    if (o->eval && of != NULL)
        return ls_fail(e, LS_EXIT_USAGE, "%s: --eval takes the data as they are", of);
    if (o->random_windows && o->val_split)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--random-windows and --val-split: windows that are moved would reach into "
                       "those held out; give other data by --val");
    return o->augment == NULL || ls_augment_parse(&o->augments, o->augment, e);
}

bool ls_trainer_options_fit(LsTrainerOptions *o, const LsProgram *p, LsError *e)
{
    static const char *const mode[] = {"auto", "bar", "plain", "none"};
    bool known = false;
    for (int k = 0; k < 4; k++)
        known |= strcmp(o->progress, mode[k]) == 0;
    if (!known)
        return ls_fail(e, LS_EXIT_USAGE, "--progress=%s: must be auto, bar, plain or none",
                       o->progress);
    if (o->help || o->version || o->print_plan)
        return !o->print_plan || fits_ranks(o, p, e);
    if (!fits_find_rate(o, p, e))
        return false;
    if (o->init_strict && !o->init_from)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--init-strict is for --init-from FILE, which is not given");
    if (o->init_from && o->ensemble_weights)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--init-from and --ensemble-weights both set the initial weights");
    if (!fits_weights_of(o, p, e))
        return false;
    if (o->log_grad_norm && (o->eval || o->check_gradients || !(o->log || o->tensorboard)))
        return ls_fail(e, LS_EXIT_USAGE, "--log-grad-norm: %s",
                       o->log || o->tensorboard
                           ? "no gradients are applied"
                           : "there is no --log FILE and no --tensorboard DIR");
    if (o->log_grad_norm && !ls_grad_norm_fits(p, e))
        return false;
    if (o->tensorboard && o->check_gradients)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--check-gradients trains nothing that --tensorboard could write");
    if (o->epochs == 0)
        return ls_fail(e, LS_EXIT_USAGE, "--epochs=0: must be more than 0; 0.5 is half an epoch");
    if (!fits_validation(o, p, e))
        return false;
    if (!o->data && !(o->eval && o->val) && (o->infers == NULL || o->predict))
        return ls_fail(e, LS_EXIT_USAGE, "no data: give --data FILE, or --data synthetic");
    if ((o->eval || o->val || o->image_grid) && p->phase.eval.nstep == 0)
        return ls_fail(e, LS_EXIT_USAGE, "this program has no evaluation form (--val, --eval, "
                       "--image-grid)");
    for (int k = 0; k < ls_trainer_table.n && o->check_gradients; k++)
        if (ls_trainer_output(o, k) && strcmp(ls_trainer_table.row[k].name, "--log") != 0)
            return ls_fail(e, LS_EXIT_USAGE, "--check-gradients trains nothing that %s could "
                           "write", ls_trainer_table.row[k].name);
    if (o->eval && o->check_gradients)
        return ls_fail(e, LS_EXIT_USAGE, "--eval has no gradients to check");
    if (o->resume && strcmp(o->resume, "auto") == 0 && !o->save)
        return ls_fail(e, LS_EXIT_USAGE, "--resume=auto looks into --save DIR, which is not given");
    if (o->max_skipped && !ls_has_scaling(p))
        return ls_fail(e, LS_EXIT_USAGE,
                       "--max-skipped: this program skips no updates, as it has no loss scale; "
                       "compile with lowerset compile --loss-scale");
    if (!fits_order(o, e) || !fits_augmentation(o, e))
        return false;
    if (!fits_privacy(o, p, e) || !fits_ensemble(o, p, e) || !fits_ranks(o, p, e)
        || !fits_pipeline(o, p, e))
        return false;
    if ((o->save_every || o->keep_last || o->save_frozen) && !o->save)
        return ls_fail(e, LS_EXIT_USAGE, "--save-every and --keep-last need --save DIR");
    if (o->overwrite && (!o->save || o->eval))
        return ls_fail(e, LS_EXIT_USAGE, "--overwrite makes room for checkpoints, but %s",
                       o->save ? "--eval saves none" : "there is no --save DIR");
    if (o->keep_last >= LS_KEEP)
        return ls_fail(e, LS_EXIT_USAGE, "--keep-last takes at most %d; without it all are kept",
                       LS_KEEP - 1);
    if (o->workers > 64 || o->threads > 4096)
        return ls_fail(e, LS_EXIT_USAGE, "at most 64 workers and 4096 threads");
    return true;
}

/* The type of --export-precision, which the model must be able to cast. */
bool ls_trainer_export_type(LsTrainerOptions *o, const LsProgram *p, LsError *e)
{
    if (o->help)
        return true;
    if (o->export_adapter != NULL && p->adapters.config == NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--export-adapter: this program has no adapters; compile with --lora or "
                       "--adapter");
    if (o->export_precision != NULL && p->adapters.nmerged > 0)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--export-precision: adapters are merged into weights of float32; compile "
                       "without --merge, or export those");
    if (o->export_external && o->export_to == NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--export-external is for --export FILE, which is not given");
    if (o->export_precision != NULL && !ls_export_type(o->export_precision, &o->export_type))
        return ls_fail(e, LS_EXIT_USAGE, "--export-precision=%s: must be f32, f16 or bf16",
                       o->export_precision);
    if (o->export_precision != NULL && o->export_to == NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--export-precision is for --export FILE, which is not given");
    if (o->export_scaling && o->export_to == NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--export-scaling is for --export FILE, which is not given");
    o->export_external |= o->export_to != NULL && ls_export_is_large(p, o->export_type);
    if (o->export_scaling && (o->export_external || o->export_type != LS_DT_REAL))
        return ls_fail(e, LS_EXIT_USAGE,
                       "--export-scaling: the nodes go into a model of one file and float32; leave "
                       "out %s",
                       o->export_type != LS_DT_REAL ? "--export-precision" : "--export-external");
    return ls_export_narrow_can(p, o->export_type, e);
}
