/* runtime/trainer/trainer_options.c -- see trainer_options.h. */
#include "runtime/trainer/trainer_options.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "runtime/base/option_table.h"
#include "runtime/engine/program_memory.h"
#include "runtime/trainer/checkpoint_folder.h"
#include "runtime/trainer/export_adapter.h"
#include "runtime/trainer/export_narrow.h"

#define FLAG LS_OPTION_FLAG, 0, 0
#define TEXT LS_OPTION_TEXT, 0, 0
#define OUTPUT LS_OPTION_OUTPUT, 0, 0
#define REAL LS_OPTION_REAL, 0, 0
#define WHOLE(least) LS_OPTION_WHOLE, least, INT64_MAX
#define AMOUNT(least) LS_OPTION_AMOUNT, least, INT64_MAX
#define AT(field) offsetof(LsTrainerOptions, field)

static const LsOption row[] = {
    LS_OPTION_HEADING("Data"),
    {"--data", NULL, "SPEC", TEXT, AT(data), 1,
     "FILE, FILE,FILE or INPUT=FILE,...: IDX, NPY, NPZ (members by input name, target 'label'), "
     "CSV, .txt, .jsonl, .bin of tokens, "
     "raw; or synthetic[:SAMPLES]"},
    {"--val", NULL, "SPEC", TEXT, AT(val), 1, "data to evaluate on after every epoch"},
    {"--label-from", NULL, "INPUT", TEXT, AT(label_from), 1,
     "use that input as the target (autoencoders); --target=input uses the first input"},
    {"--scale", NULL, "S", TEXT, AT(scale), 1,
     "multiply real inputs by S (default: bytes are divided by 255)"},
    {"--mean", NULL, "M,...", TEXT, AT(mean), 1,
     "subtract after scaling: one number, or one for each channel"},
    {"--std", NULL, "D,...", TEXT, AT(std), 1,
     "divide by after --mean: one number, or one for each channel"},
    {"--raw", NULL, "TYPE", TEXT, AT(raw), 1, "files are bare numbers: float32, uint8, int64, ..."},
    {"--stride", NULL, "N", WHOLE(1), AT(stride), 1,
     "token streams: tokens from the start of one row to that of the next (default: a row)"},
    {"--pack", NULL, NULL, FLAG, AT(pack), 1,
     "JSON lines: put as many samples into a row as fit; of programs compiled with --segments"},
    {"--shuffle", NULL, NULL, FLAG, AT(shuffle), 1,
     "a new order every epoch (default); --no-shuffle: file order"},
    {"--drop-last", NULL, NULL, FLAG, AT(drop_last), 1, "leave out an incomplete last batch"},
    {"--workers", NULL, "N", WHOLE(0), AT(workers), 1, "threads that prepare batches"},
    LS_OPTION_HEADING("Training"),
    {"--epochs", NULL, "N", WHOLE(1), AT(epochs), 1, "passes over the data (default 1)"},
    {"--steps", NULL, "N", WHOLE(1), AT(steps), 1, "stop after N updates in all"},
    {"--lr", NULL, "RATE", REAL, AT(lr), 1, "learning rate (default: set by lowerset compile)"},
    {"--schedule", NULL, "S", TEXT, AT(schedule), 1,
     "constant, linear, cosine[:min=F], step:every=N,gamma=F; each with warmup=N, e.g. "
     "cosine:warmup=500"},
    {"--max-skipped", NULL, "N", WHOLE(1), AT(max_skipped), 1,
     "with a loss scale: end with exit code 7 after N skipped updates in a row (default 100)"},
    {"--seed", NULL, "N", WHOLE(0), AT(seed), 1,
     "seed of shuffling, dropout and what optimizers draw (default 0)"},
    {"--ensemble-seed", NULL, "N", WHOLE(0), AT(ensemble_seed), 1,
     "an ensemble's members begin with different weights: all but the first with the file's in an "
     "order drawn by N, within "
     "each tensor (default: all as in the file)"},
    {"--ensemble-weights", NULL, "FILE", TEXT, AT(ensemble_weights), 1,
     "NPZ with initial weights of all members: PARAM or stack/PARAM, of shape [members, ...]"},
    {"--member-rates", NULL, "R,R,...", TEXT, AT(member_rates), 1,
     "learning rates of an ensemble's members (default: --lr for all)"},
    {"--member-seeds", NULL, "N,N,...", TEXT, AT(member_seeds), 1,
     "seeds of dropout of an ensemble's members (default: --seed plus the member's number, from "
     "0)"},
    {"--noise-seed", NULL, "N", WHOLE(0), AT(noise_seed), 1,
     "private training: repeatable draws and noise, for experiments; such a run is not private "
     "(default: a secret of the "
     "system's)"},
    {"--check-clip", NULL, "N", WHOLE(0), AT(check_clip), 1,
     "private training: look in the first update and every N updates whether the gradient of one "
     "sample is clipped, and end with "
     "exit code 6 if it is not; takes the time of a micro-batch; 0: never (default 100)"},
    {"--threads", NULL, "N", WHOLE(1), AT(threads), 1,
     "threads that compute (default: all cores); results do not "
     "depend on it"},
    {"--ranks", NULL, "N", WHOLE(1), AT(ranks), 1,
     "the number of ranks: as compiled with lowerset compile --ranks N; any that the program takes "
     "with --ranks any (default 1, "
     "or as --peers or mpirun says); without --peers they are processes of this machine, which the "
     "program starts"},
    {"--peers", NULL, "HOST:PORT,...", TEXT, AT(peers), 1,
     "ranks on several machines: where each of them listens; the program is started once for each"},
    {"--rank", NULL, "K", WHOLE(0), AT(rank), 1,
     "with --peers: which of them this one is, from 0 (default: as srun or mpirun "
     "says)"},
    {"--token-file", NULL, "FILE", TEXT, AT(token_file), 1,
     "with --peers: a secret text of at least 16 characters, the same for all ranks, by which they "
     "know each other (default: the "
     "variable LOWERSET_TOKEN, if it is set)"},
    {"--comm", NULL, "ENGINE", TEXT, AT(comm), 1,
     "what carries messages between ranks: local (processes of this machine), sockets (--peers) or "
     "mpi (mpirun, srun; the "
     "program must have it); default: as fits. nccl: as fits, and gradients go from GPU to GPU by "
     "NCCL, as they do by default "
     "where all ranks have it"},
    {"--bucket", NULL, "BYTES", WHOLE(1), AT(bucket), 1,
     "with ranks: exchange gradients as soon as so many bytes of them are complete (default "
     "4194304); results do not depend on "
     "it"},
    {"--late-exchange", NULL, NULL, FLAG, AT(late_exchange), 1,
     "with ranks: exchange gradients only after the backward part, not beside it: to measure what "
     "that brings"},
    {"--compare-replicas", NULL, "N", WHOLE(0), AT(compare_replicas), 1,
     "with ranks: once in N updates, and before the first and after the last one, compare the "
     "parameters of all ranks, and end the "
     "run if they differ; 0: never (default 100)"},
    {"--share-gpus", NULL, NULL, FLAG, AT(share_gpus), 1,
     "ranks may share GPUs, where a machine has fewer of them than ranks"},
    {"--tune", NULL, NULL, FLAG, AT(tune), 1,
     "on a GPU: time the libraries' kernels for each convolution and product, and keep the "
     "fastest"},
    {"--eval", NULL, NULL, FLAG, AT(eval), 1, "do not train: evaluate on --val, or on --data"},
    LS_OPTION_HEADING("Results"),
    {"--save", NULL, "DIR", TEXT, AT(save), 1, "folder for checkpoints (safetensors)"},
    {"--save-every", NULL, "N", WHOLE(1), AT(save_every), 1,
     "save every N updates (default: every epoch)"},
    {"--keep-last", NULL, "K", WHOLE(1), AT(keep_last), 1, "delete all but the last K checkpoints"},
    {"--save-frozen", NULL, NULL, FLAG, AT(save_frozen), 1,
     "checkpoints also have the weights that are not trained"},
    {"--resume", NULL, "FILE", TEXT, AT(resume), 1,
     "continue from a checkpoint, bit for bit; auto: from the newest in --save"},
    {"--overwrite", NULL, NULL, FLAG, AT(overwrite), 1,
     "remove the checkpoints of other runs from --save when this run begins; without it, a folder "
     "that has some is refused"},
    {"--export", NULL, "FILE", OUTPUT, AT(export_to), 1,
     "write the trained model as ONNX, in evaluation form"},
    {"--export-adapter", NULL, "DIR", TEXT, AT(export_adapter), 1,
     "write the trained adapters as peft reads them: adapter_config.json and "
     "adapter_model.safetensors; of an ensemble, of each member to DIR/0, DIR/1, ..."},
    {"--export-member", NULL, "K", WHOLE(0), AT(export_member), 1,
     "the member of an ensemble that --export and --export-adapter write, from 0"},
    {"--export-precision", NULL, "f32|f16|bf16", TEXT, AT(export_precision), 1,
     "types of the weights in --export (default f32); a Cast widens those of 16 bits"},
    {"--export-external", NULL, NULL, FLAG, AT(export_external), 1,
     "--export writes the weights to FILE.data beside FILE, as it does with more than 2 GiB of "
     "them"},
    {"--image-grid", NULL, "FILE", OUTPUT, AT(image_grid), 1,
     "write a picture (PNG or PPM): five inputs, with the model's outputs below"},
    LS_OPTION_HEADING("Reports"),
    {"--log", NULL, "FILE", OUTPUT, AT(log), 1, "write a line of JSON for each step"},
    {"--progress", NULL, "MODE", TEXT, AT(progress), 1,
     "how to show progress: auto, bar, plain or none"},
    {"--trace", NULL, "FILE", OUTPUT, AT(trace), 1,
     "write a timeline of the last steps (Chrome trace JSON)"},
    {"--profile", NULL, "FILE", OUTPUT, AT(profile), 1, "write the mean time of every node (JSON)"},
    {"--check-numerics", NULL, NULL, FLAG, AT(check_numerics), 1,
     "stop at the first node that makes a NaN, and name the node"},
    {"--check-gradients", NULL, "[=N]", AMOUNT(1), AT(check_gradients), 1,
     "do not train: compare gradients of one batch with differences of its loss, for N elements of "
     "the "
     "parameters; exit 6 if they differ"},
    {"--dump", NULL, "FILE", OUTPUT, AT(dump), 1,
     "write the values of the last step as NPZ: loss, out/, grad/, "
     "param/, stat/"},
    {"--measure", NULL, NULL, FLAG, AT(measure), 1, "print how much of the arena the steps use"},
    {"--print-plan", NULL, NULL, FLAG, AT(print_plan), 1, "print the table of steps and stop"},
    {"--version", NULL, NULL, FLAG, AT(version), 1, "print model and plan and stop"},
    {"--help", NULL, NULL, FLAG, AT(help), 1, "print this"},
};
enum { NROWS = sizeof row / sizeof row[0] };
static const LsOptionTable table = {.row = row, .n = NROWS, .where = 1, .negative = true};

/* Options that the compiler fixed; here they are refused with a hint to compile with them. */
static const char *const fixed[] = {
    "accumulate",
    "arch",
    "batch",
    "batch-size",
    "bf16-sums",
    "bn",
    "bn-var",
    "budget",
    "clip-norm",
    "clip-value",
    "dim",
    "dp",
    "ema",
    "ensemble",
    "ensemble-batches",
    "ensemble-lanes",
    "eval-precision",
    "forget",
    "freeze",
    "grads",
    "keep",
    "label",
    "label-smoothing",
    "loss",
    "loss-input",
    "loss-scale",
    "no-decay",
    "microbatches",
    "optimizer",
    "order",
    "precision",
    "randomness",
    "recompute",
    "shape",
    "stages",
    "stop-gradient",
    "strategy",
    "target",
    "train",
    "train-only",
    "workspace",
};

/* False, with an error: the compiler fixed that option. */
static bool is_open(const char *arg, LsError *e)
{
    size_t n = strcspn(arg, "=");
    for (size_t k = 0; k < sizeof fixed / sizeof fixed[0]; k++)
        if (strlen(fixed[k]) + 2 == n && strncmp(arg + 2, fixed[k], n - 2) == 0)
            return ls_fail(e, LS_EXIT_USAGE,
                           "--%s was fixed when the trainer was compiled; compile again "
                           "with lowerset compile --%s",
                           fixed[k], strcmp(fixed[k], "batch-size") == 0 ? "batch" : fixed[k]);
    return true;
}

/* Parses the option at argv[*k]; *k advances when the value is the next word. */
static bool parse_one(LsTrainerOptions *o, int argc, char **argv, int *k, LsError *e)
{
    if (strcmp(argv[*k], "--target=input") == 0) {
        o->label_from = "input";
        return true;
    }
    char why[LS_OPTION_WHY];
    if (!is_open(argv[*k], e))
        return false;
    const LsOption *op = ls_option_take(&table, o, NULL, argc, argv, k, why);
    o->seed_given |= op != NULL && op->at == AT(seed);
    o->order_given |= op != NULL && (op->at == AT(shuffle) || op->at == AT(drop_last));
    return op != NULL || ls_fail(e, LS_EXIT_USAGE, "%s", why);
}

/* The path of row k, if it is an output option that was given. */
static const char *output(const LsTrainerOptions *o, int k)
{
    return row[k].kind == LS_OPTION_OUTPUT
               ? *(const char *const *)(const void *)((const char *)o + row[k].at)
               : NULL;
}

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
            "--shuffle, --no-shuffle and --drop-last: private training draws the samples of "
            "every update at random, whatever their order");
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
    const bool exports = o->export_to != NULL || o->export_adapter != NULL;
    if (o->export_member >= p->ensemble.members || (o->export_member >= 0 && !exports))
        return ls_fail(e, LS_EXIT_USAGE,
                       exports ? "--export-member=%" PRId64
                                 ": members are numbered from 0 to %" PRId64
                               : "--export-member is for --export FILE and --export-adapter DIR, "
                                 "and neither is given",
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

static bool consistent(const LsTrainerOptions *o, const LsProgram *p, LsError *e)
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
    if (!o->data && !(o->eval && o->val))
        return ls_fail(e, LS_EXIT_USAGE, "no data: give --data FILE, or --data synthetic");
    if ((o->eval || o->val || o->image_grid) && p->phase.eval.nstep == 0)
        return ls_fail(e, LS_EXIT_USAGE, "this program has no evaluation form (--val, --eval, "
                       "--image-grid)");
    for (int k = 0; k < NROWS && o->check_gradients; k++)
        if (output(o, k) && row[k].at != AT(log))
            return ls_fail(e, LS_EXIT_USAGE, "--check-gradients trains nothing that --%s could "
                           "write", row[k].name + 2);
    if (o->eval && o->check_gradients)
        return ls_fail(e, LS_EXIT_USAGE, "--eval has no gradients to check");
    if (o->resume && strcmp(o->resume, "auto") == 0 && !o->save)
        return ls_fail(e, LS_EXIT_USAGE, "--resume=auto looks into --save DIR, which is not given");
    if (o->max_skipped && !ls_has_scaling(p))
        return ls_fail(e, LS_EXIT_USAGE,
                       "--max-skipped: this program skips no updates, as it has no loss scale; "
                       "compile with lowerset compile --loss-scale");
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
static bool read_export(LsTrainerOptions *o, const LsProgram *p, LsError *e)
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
    o->export_external |= o->export_to != NULL && ls_export_is_large(p, o->export_type);
    return ls_export_narrow_can(p, o->export_type, e);
}

bool ls_trainer_options_parse(LsTrainerOptions *o, const LsProgram *p, int argc, char **argv,
                              LsError *e)
{
    *o = (LsTrainerOptions){.shuffle = !ls_is_private(p),
                            .workers = -1,
                            .noise_seed = -1,
                            .check_clip = -1,
                            .ensemble_seed = -1,
                            .export_member = -1,
                            .rank = -1,
                            .compare_replicas = LS_COMPARE_REPLICAS,
                            .lr = p->defaults.lr,
                            .progress = "auto",
                            .schedule = p->defaults.schedule ? p->defaults.schedule : "constant"};
    for (int k = 1; k < argc; k++) {
        if (strcmp(argv[k], "-h") == 0)
            o->help = true;
        else if (strncmp(argv[k], "--", 2) != 0 || !argv[k][2])
            return ls_fail(e, LS_EXIT_USAGE, "'%s' is not an option (see --help)", argv[k]);
        else if (!parse_one(o, argc, argv, &k, e))
            return false;
    }
    return consistent(o, p, e) && read_export(o, p, e);
}

/* Refuses two outputs into one regular file: the second would replace the first. */
static bool is_apart(const LsTrainerOptions *o, int k, LsError *e)
{
    LsOut out;
    const char *path = output(o, k);
    if (!ls_out_place(&out, path, e))
        return false;
    for (int j = 0; j < k && !out.through; j++) {
        const char *other = output(o, j);
        if (other && strcmp(path, other) == 0)
            return ls_fail(e, LS_EXIT_USAGE, "%s and %s both write %s", row[j].name,
                           row[k].name, path);
    }
    return true;
}

/* The second file of --export is an output, too. */
static bool is_apart_from_data(const LsTrainerOptions *o, LsError *e)
{
    const size_t n = strlen(o->export_to);
    for (int k = 0; k < NROWS; k++) {
        const char *other = output(o, k);
        if (other && strncmp(other, o->export_to, n) == 0 && strcmp(other + n, ".data") == 0)
            return ls_fail(e, LS_EXIT_USAGE, "--export writes its weights to %s, and %s writes it",
                           other, row[k].name);
    }
    return true;
}

bool ls_trainer_outputs_check(const LsTrainerOptions *o, const LsProgram *p, LsError *e)
{
    for (int k = 0; k < NROWS; k++)
        if (output(o, k) && (!is_apart(o, k, e) || !ls_out_check(output(o, k), e)))
            return false;
    return (o->export_adapter == NULL
            || ls_export_adapter_check(p, o->export_member, o->export_adapter, e))
           && (!o->export_external
               || (is_apart_from_data(o, e) && ls_external_check(o->export_to, e)));
}

void ls_trainer_options_help(const LsProgram *p, const char *name, FILE *to)
{
    fprintf(to,
            "usage: %s --data SPEC [options]\n\nTrains %s: %s, %s, batch %" PRId64 ", plan %s.\n",
            name, p->about.model, p->about.loss, p->about.optimizer, ls_batch_samples(&p->division),
            p->about.plan_hash);
    if (ls_is_private(p))
        fprintf(to, "Updates are private: clip %g, noise %g, delta %g, %g samples on average.\n",
                p->privacy.clip, p->privacy.noise, p->privacy.delta, p->privacy.expected);
    ls_option_help(to, &table);
    fprintf(to, "\nSIGINT, SIGTERM and SIGHUP end the run after the current step and write a "
                "checkpoint (to --save, "
                "else\nbeside --export, else beside the program). If the step takes longer than a "
                "second and no update would be lost, the "
                "run ends\nwithout it. A second signal ends the run at once and writes "
                "nothing.\n\nExit codes: 0 "
                "done, 1 a file cannot be written, 2 wrong usage, 5 device or its library "
                "missing,\n6 gradients are "
                "wrong, 7 diverged (loss not finite, or too many skipped updates), 8 data or "
                "checkpoint unreadable,\n128 + signal: interrupted, "
                "checkpoint written (SIGINT: 130).\n");
}
