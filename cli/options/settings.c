/* cli/options/settings.c -- turns option texts into numbers and structs. Import and loss have files
 * of their own. */
#include "cli/options/settings.h"

#include "cli/options/option_values.h"
#include "cli/options/optimizer_spec.h"
#include "cli/options/privacy_spec.h"
#include "cli/options/scale_spec.h"
#include "cli/options/trainer_words.h"
#include "codegen/kernels/matmul.h"
#include "runtime/base/number.h"
#include "scheduler/plan/planner.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

static int bad_setting(const char *option, const char *text, const char *why)
{
    fprintf(stderr, "lowerset: %s: '%s': %s\n", option, text, why);
    return LS_EXIT_USAGE;
}

const char *ls_options_optimizer(const LsOptions *o)
{
    return o->update.optimizer != NULL ? o->update.optimizer : LS_OPTIMIZER_USUAL;
}

/* Parses a number above 0 that is not zero as a float. */
static int limit(const char *option, const char *text, double *v)
{
    if (text == NULL || ls_number_real(text, FLT_MIN, FLT_MAX, v))
        return 0;
    return ls_options_bad(option, text, "a number above 0");
}

/* --no-decay, --ema */
static int weight_options(LsCtx *cx, const LsOptions *o, LsOptimizerOptions *op)
{
    const char **glob = ls_arena_alloc(cx->arena, (size_t)o->update.no_decay.n + 1, sizeof *glob);
    op->spares_vectors = true;
    for (int k = 0; k < o->update.no_decay.n; k++) {
        if (strcmp(o->update.no_decay.item[k], "none") == 0)
            op->spares_vectors = false;
        else
            glob[op->nno_decay++] = o->update.no_decay.item[k];
    }
    op->no_decay = glob;
    if (o->update.no_decay.n > 0 && op->hyper.decay == 0) {
        fprintf(stderr, "lowerset: --no-decay: nothing decays without wd= in --optimizer\n");
        return LS_EXIT_USAGE;
    }
    if (o->update.ema != NULL &&
        (!ls_number_real(o->update.ema, FLT_MIN, 1, &op->hyper.ema) || op->hyper.ema >= 1))
        return ls_options_bad("--ema", o->update.ema, "a number above 0 and below 1");
    if (o->update.ema != NULL && (op->kind == LS_FREE_SGD || op->kind == LS_FREE_ADAMW)) {
        fprintf(stderr, "lowerset: --ema: schedule-free optimizers keep an average of their own\n");
        return LS_EXIT_USAGE;
    }
    if (o->update.ema != NULL && op->kind == LS_OPT_NONE) {
        fprintf(stderr, "lowerset: --ema: without an optimizer no weight changes\n");
        return LS_EXIT_USAGE;
    }
    return 0;
}

/* --sums */
static int sum_options(const LsOptions *o, LsOptimizerOptions *op)
{
    static const char *const way[] = {"tree", "running", NULL};
    const int running = ls_options_word("--sums", o->parts.sums, way, 0);
    const char *why = running != 1 ? NULL
        : o->samples.privacy != NULL
            ? "private training has one running sum anyway: leave one of them out"
        : ls_options_over_ranks(o) ? "ranks add up in the tree: leave one of them out"
        : ls_options_stages(o) > 1 ? "stages add up in the tree: leave one of them out"
        : ls_options_parts(o) < 2 && o->parts.accumulate < 2
            ? "an update has one part without --accumulate or --microbatches"
            : NULL;
    if (why != NULL)
        fprintf(stderr, "lowerset: --sums=running: %s\n", why);
    op->running_sums = running == 1;
    op->sums_stay = ls_options_stages(o) < 2;
    return running < 0 || why != NULL ? LS_EXIT_USAGE : 0;
}

static int optimizer_options(LsCtx *cx, const LsOptions *o, LsType compute, LsOptimizerOptions *op)
{
    char why[300];
    double lr;
    if (!ls_optimizer_parse(ls_options_optimizer(o), op, &lr, why, sizeof why))
        return bad_setting("--optimizer", o->update.optimizer, why);
    if (o->update.lr != NULL && !ls_trainer_lr(o->update.lr, &lr))
        return ls_options_bad("--lr", o->update.lr, "a number of at least 0");
    if (o->update.schedule != NULL && !ls_trainer_schedule(o->update.schedule, why, sizeof why)) {
        fprintf(stderr, "lowerset: %s\n", why);
        return LS_EXIT_USAGE;
    }
    int code = weight_options(cx, o, op);
    code = code != 0 ? code : limit("--clip-norm", o->update.clip_norm, &op->clip_norm);
    code = code != 0 ? code : limit("--clip-value", o->update.clip_value, &op->clip_value);
    enum { MOST_STEPS = 1 << 20 };
    if (op->hyper.apex != 0 && o->update.clip_norm != NULL) {
        fprintf(stderr,
                "lowerset: --clip-norm: lamb:apex clips gradients itself; say lamb:apex,clip=%s\n",
                o->update.clip_norm);
        return LS_EXIT_USAGE;
    }
    if (op->hyper.apex != 0)
        op->clip_norm = op->hyper.max_norm;
    if (o->parts.accumulate > 1)
        op->accumulate = (int)o->parts.accumulate;
    op->parts = (int)ls_options_parts(o);
    code = code != 0 ? code : sum_options(o, op);
    op->ranks = o->ranks.count == LS_OPTION_ANY ? LS_RANKS_ANY : (int)o->ranks.count;
    if (code == 0 && o->parts.accumulate > MOST_STEPS / ls_options_parts(o)) {
        fprintf(stderr,
                "lowerset: --microbatches=%" PRId64 ": with --accumulate=%" PRId64
                ", an update takes more than %d "
                "parts\n",
                o->parts.microbatches, o->parts.accumulate, (int)MOST_STEPS);
        code = LS_EXIT_USAGE;
    }
    if (code == 0 && !ls_scale_parse(o->update.scale, compute, &op->scale, why, sizeof why))
        code = bad_setting("--loss-scale", o->update.scale, why);
    return code;
}

/* --dump: a pass, or all passes. */
static int dump_options(const LsOptions *o, LsPipelineOptions *p)
{
    p->dump = o->output.dump_pass;
    if (p->dump == NULL || strcmp(p->dump, "all") == 0)
        return 0;
    for (size_t k = 0; ls_pipeline_pass(k) != NULL; k++)
        if (strcmp(p->dump, ls_pipeline_pass(k)) == 0)
            return 0;
    fprintf(stderr, "lowerset: --dump: '%s' is not one of all", p->dump);
    for (size_t k = 0; ls_pipeline_pass(k) != NULL; k++)
        fprintf(stderr, " %s", ls_pipeline_pass(k));
    fprintf(stderr, "\n");
    return LS_EXIT_USAGE;
}

/* The C compiler's -O. Levels above 3 change floating-point results, so budgets would show. */
static int level_options(const LsOptions *o)
{
    static const char *const level[] = {"0", "1", "2", "3", "s", "g", NULL};
    return ls_options_word("--opt", o->machine.opt, level, 0) < 0 ? LS_EXIT_USAGE : 0;
}

int ls_options_precision(const LsOptions *o, LsPrecisionSpec *to)
{
    char why[200];
    if (ls_precision_parse(o->machine.precision, to, why, sizeof why))
        return 0;
    fprintf(stderr, "lowerset: --precision: %s\n", why);
    return LS_EXIT_USAGE;
}

/* --eval-precision: the type that the evaluation form computes in. */
static int eval_options(const LsOptions *o, const LsPrecisionSpec *of, LsType *compute)
{
    static const char *const type[] = {"f32", "bf16", "f16", NULL};
    *compute = of->compute;
    if (o->machine.eval_precision == NULL)
        return 0;
    int k = ls_options_word("--eval-precision", o->machine.eval_precision, type, 0);
    if (k < 0)
        return LS_EXIT_USAGE;
    *compute = k == 1 ? LS_BF16 : k == 2 ? LS_F16 : LS_REAL;
    if (of->real_bytes == 4 && !of->tf32)
        return 0;
    fprintf(
        stderr,
        "lowerset: --eval-precision: with --precision=%s, evaluation computes in the same type\n",
        o->machine.precision);
    return LS_EXIT_USAGE;
}

/* --precision and --eval-precision, of which only the types of the compute matter here;
 * --precision-of. */
static int precision_options(LsCtx *cx, const LsOptions *o, LsPrecision *p, LsType *eval_compute)
{
    LsPrecisionSpec spec;
    const char **glob = ls_arena_alloc(cx->arena, (size_t)o->machine.wide.n, sizeof *glob);
    if (ls_options_precision(o, &spec) != 0 || eval_options(o, &spec, eval_compute) != 0)
        return LS_EXIT_USAGE;
    for (int k = 0; k < o->machine.wide.n; k++) {
        const char *equal = strrchr(o->machine.wide.item[k], '=');
        if (equal == NULL || strcmp(equal, "=f32") != 0)
            return ls_options_bad("--precision-of", o->machine.wide.item[k], "GLOB=f32");
        glob[k] = ls_arena_printf(cx->arena, "%.*s", (int)(equal - o->machine.wide.item[k]),
                                  o->machine.wide.item[k]);
    }
    if (o->machine.wide.n > 0 && spec.compute == LS_REAL && *eval_compute == LS_REAL) {
        fprintf(stderr, "lowerset: --precision-of: there is nothing to keep in f32 without "
                        "--precision=bf16 or f16\n");
        return LS_EXIT_USAGE;
    }
    *p = (LsPrecision){.compute = spec.compute, .wide = glob, .nwide = o->machine.wide.n,
                       .gpu = o->machine.target != NULL && strcmp(o->machine.target, "cuda") == 0};
    return 0;
}

/* --head-gradient */
static int head_gradient(const LsOptions *o, LsPipelineOptions *p)
{
    static const char *const how[] = {"auto", "whole", "parts", NULL};
    enum { PARTS = 2 };
    const int word = ls_options_word("--head-gradient", o->loss.head_gradient, how, 0);
    const char *chunks = o->loss.head_chunks;
    p->head.in_update = word == PARTS;
    if (word == PARTS && (chunks == NULL || strcmp(chunks, "off") == 0)) {
        fprintf(stderr, "lowerset: --head-gradient=parts goes with --head-chunks=N or auto\n");
        return LS_EXIT_USAGE;
    }
    const char *other = o->pipe.stages > 0           ? "--stages"
                        : o->memory.store_gradients ? "--store-gradients"
                                                    : NULL;
    if (word == PARTS && other != NULL) {
        fprintf(stderr, "lowerset: --head-gradient=parts and %s do not go together: leave one of "
                        "both out\n", other);
        return LS_EXIT_USAGE;
    }
    return word < 0 ? LS_EXIT_USAGE : 0;
}

/* --head-chunks: a number; "auto" and "off", and nothing, leave the head whole until a budget has
 * no plan of it (cli/job/head_job.c). */
static int head_options(const LsOptions *o, LsPrecisionSpec precision, LsPipelineOptions *p)
{
    enum { MOST = 65536 };
    const char *text = o->loss.head_chunks, *end = "";
    p->head = (LsHeadChunks){.ends = p->precision.gpu ? NULL : ls_matmul_block_ends,
                             .real_bytes = precision.real_bytes,
                             .dot16 = precision.compute == LS_BF16};
    const int code = head_gradient(o, p);
    if (code != 0 || text == NULL || strcmp(text, "auto") == 0 || strcmp(text, "off") == 0)
        return code;
    if (!ls_options_count(text, &end, &p->head.chunks) || *end != '\0' || p->head.chunks > MOST)
        return ls_options_bad("--head-chunks", text, "a whole number from 1 to 65536, auto or off");
    return 0;
}

/* --grads, --dp */
static int grads_options(const LsOptions *o, LsPipelineOptions *p)
{
    static const char *const grads[] = {"mean", "per-sample", "per-sample-norm", NULL};
    static const char *const randomness[] = {"error", "different", "same", NULL};
    static const char *const norms[] = {"auto", "pairs", "tiles", "terms", NULL};
    char why[300];
    LsPrecisionSpec precision;
    if (ls_options_precision(o, &precision) != 0)
        return LS_EXIT_USAGE;
    const int mode = ls_options_word("--grads", o->samples.grads, grads, LS_GRADS_MEAN);
    if (mode < 0)
        return LS_EXIT_USAGE;
    const int random =
        ls_options_word("--randomness", o->ensemble.randomness, randomness, LS_RANDOM_ERROR);
    if (random < 0)
        return LS_EXIT_USAGE;
    const int of = ls_options_word("--sample-norms", o->samples.norms, norms, LS_NORMS_CHEAPEST);
    if (of < 0)
        return LS_EXIT_USAGE;
    p->grads.norms = (LsSampleNorms)of;
    p->grads.mode = (LsGradsMode)mode;
    p->grads.randomness = (LsRandomness)random;
    if (!ls_privacy_parse(o->samples.privacy, &p->grads.privacy, why, sizeof why))
        return bad_setting("--dp", o->samples.privacy, why);
    if (o->ensemble.randomness != NULL && !ls_wants_samples(&p->grads) &&
        o->ensemble.members == 0) {
        fprintf(stderr, "lowerset: --randomness: samples have no gradients of their own without "
                        "--grads or --dp, and there "
                        "are no members without --ensemble\n");
        return LS_EXIT_USAGE;
    }
    const int code = head_options(o, precision, p);
    if (code != 0)
        return code;
    if (p->head.chunks > 0 && ls_wants_samples(&p->grads)) {
        fprintf(stderr, "lowerset: --head-chunks: a chunk has positions of several samples, and "
                        "--grads and --dp need those of each apart\n");
        return LS_EXIT_USAGE;
    }
    if (o->loss.segments && o->machine.target != NULL && strcmp(o->machine.target, "cuda") == 0) {
        fprintf(stderr, "lowerset: --segments: kernels of GPUs do not keep the samples of a row "
                        "apart; leave --target=cuda or --segments out\n");
        return LS_EXIT_USAGE;
    }
    p->segments = o->loss.segments ? "segments" : NULL;
    if (o->samples.norms != NULL && !ls_wants_samples(&p->grads)) {
        fprintf(stderr, "lowerset: --sample-norms: samples have no gradients of their own without "
                        "--grads or --dp\n");
        return LS_EXIT_USAGE;
    }
    if (ls_wants_samples(&p->grads) && ls_options_parts(o) > 1) {
        fprintf(stderr, p->grads.privacy.on
                            ? "lowerset: --microbatches: with --dp, --batch is the number of "
                              "samples that run together, and an update takes "
                              "as many batches as its samples fill\n"
                            : "lowerset: --microbatches: --grads shows the samples of a whole "
                              "batch; leave one of them out\n");
        return LS_EXIT_USAGE;
    }
    if (!p->optimizer.scale.on || !ls_wants_samples(&p->grads))
        return 0;
    fprintf(stderr,
            "lowerset: %s: gradients of samples have no loss scale; give --loss-scale=none, or "
            "--precision=bf16 instead of f16\n",
            p->grads.privacy.on ? "--dp" : "--grads");
    return LS_EXIT_USAGE;
}

/* --ensemble, after all options that do not go with it. */
static int ensemble_options(const LsOptions *o, LsPipelineOptions *p)
{
    static const char *const batches[] = {"shared", "each", NULL};
    const int own = ls_options_word("--ensemble-batches", o->ensemble.batches, batches, 0);
    if (own < 0)
        return LS_EXIT_USAGE;
    const char *why = NULL;
    if (o->ensemble.members == 0)
        why = own ? "--ensemble-batches: there are no members without --ensemble"
              : o->ensemble.lanes > 0 ? "--ensemble-lanes: there are no members without --ensemble"
                                      : NULL;
    else if (o->ensemble.lanes > o->ensemble.members)
        why = "--ensemble-lanes: there are more lanes than members";
    else if (ls_wants_samples(&p->grads))
        why = "--ensemble: members have gradients of whole batches; --grads and --dp are for one "
              "model";
    else if (p->optimizer.scale.on)
        why = "--ensemble: members have no loss scale; give --loss-scale=none, or --precision=bf16 "
              "instead of f16";
    else if (ls_options_parts(o) > 1)
        why = "--ensemble: members run whole batches; leave --microbatches out";
    else if (p->precision.gpu)
        why = "--ensemble is for --target=cpu so far";
    if (why != NULL) {
        fprintf(stderr, "lowerset: %s\n", why);
        return LS_EXIT_USAGE;
    }
    p->ensemble = (LsEnsemble){o->ensemble.members, o->ensemble.lanes > 0 ? o->ensemble.lanes : 1,
                               own == 1, p->grads.randomness};
    return 0;
}

/* --ranks, after all options that do not go with it. */
static int rank_options(const LsOptions *o, const LsPipelineOptions *p)
{
    const char *why = NULL;
    static const char *const engine[] = {"sockets", "mpi", NULL};
    if (ls_options_word("--comm", o->ranks.comm, engine, 0) < 0)
        return LS_EXIT_USAGE;
    if (!ls_options_over_ranks(o) && ls_options_stages(o) < 2 && o->ranks.comm != NULL)
        why = "--comm is for --ranks: one process sends no messages";
    else if (!ls_options_over_ranks(o))
        return 0;
    else if (o->ranks.count == LS_OPTION_ANY && ls_options_parts(o) < 2)
        why = "--ranks any: ranks share the parts of a batch: say with --microbatches how many "
              "there are";
    else if (o->ranks.count > 1 && ls_options_parts(o) % o->ranks.count != 0)
        why = "--ranks: each rank runs equally many parts of a batch: give --microbatches a "
              "multiple of the ranks";
    else if (p->optimizer.kind == LS_OPT_NONE)
        why = "--ranks: with --optimizer=none there is nothing that ranks could share";
    else if (ls_wants_samples(&p->grads))
        why = p->grads.privacy.on ? "--ranks: --dp is for one process"
                                  : "--ranks: --grads is for one process";
    else if (p->ensemble.members > 0)
        why = "--ranks: --ensemble is for one process";
    if (why != NULL)
        fprintf(stderr, "lowerset: %s\n", why);
    return why != NULL ? LS_EXIT_USAGE : 0;
}

int ls_options_pipeline(LsCtx *cx, const LsOptions *o, LsPipelineOptions *p)
{
    *p = (LsPipelineOptions){.drop_bias = o->norms.drop_bias};
    int code = dump_options(o, p);
    code = code != 0 ? code : level_options(o);
    code = code != 0 ? code : ls_settings_import(cx, o, &p->import);
    code = code != 0 ? code : ls_settings_loss(cx, o, &p->loss);
    code = code != 0 ? code : precision_options(cx, o, &p->precision, &p->eval_compute);
    code = code != 0 ? code : optimizer_options(cx, o, p->precision.compute, &p->optimizer);
    code = code != 0 ? code : grads_options(o, p);
    code = code != 0 ? code : ensemble_options(o, p);
    return code != 0 ? code : rank_options(o, p);
}

double ls_options_lr(const LsOptions *o)
{
    LsOptimizerOptions op;
    double lr = 0;
    char why[300];
    ls_optimizer_parse(ls_options_optimizer(o), &op, &lr, why, sizeof why);
    if (o->update.lr != NULL)
        ls_trainer_lr(o->update.lr, &lr);
    return lr;
}
