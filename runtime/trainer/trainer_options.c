/* runtime/trainer/trainer_options.c -- see trainer_options.h. */
#include "runtime/trainer/trainer_options.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "runtime/predict/predict_file.h"
#include "runtime/trainer/export_adapter.h"
#include "runtime/trainer/export_narrow.h"

#define AT(field) offsetof(LsTrainerOptions, field)

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
    const LsOption *op = ls_option_take(&ls_trainer_table, o, NULL, argc, argv, k, why);
    o->seed_given |= op != NULL && op->at == AT(seed);
    o->order_given |= op != NULL && (op->at == AT(shuffle) || op->at == AT(shuffle_seed)
                                       || op->at == AT(drop_last));
    return op != NULL || ls_fail(e, LS_EXIT_USAGE, "%s", why);
}

const char *ls_trainer_output(const LsTrainerOptions *o, int k)
{
    return ls_trainer_table.row[k].kind == LS_OPTION_OUTPUT
               ? *(const char *const *)(const void *)((const char *)o + ls_trainer_table.row[k].at)
               : NULL;
}
bool ls_trainer_options_parse(LsTrainerOptions *o, const LsProgram *p, int argc, char **argv,
                              LsError *e)
{
    *o = (LsTrainerOptions){.shuffle = !ls_is_private(p),
                            .workers = -1,
                            .epochs = -1,
                            .shuffle_seed = -1,
                            .noise_seed = -1,
                            .check_clip = -1,
                            .ensemble_seed = -1,
                            .export_member = -1,
                            .rank = -1,
                            .compare_replicas = LS_COMPARE_REPLICAS,
                            .temperature = -1,
                            .export_notes = true,
                            .top_p = -1,
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
    return ls_trainer_inference_fit(o, p, e) && ls_trainer_options_fit(o, p, e)
           && ls_trainer_export_type(o, p, e);
}

/* Refuses two outputs into one regular file: the second would replace the first. */
static bool is_apart(const LsTrainerOptions *o, int k, LsError *e)
{
    LsOut out;
    const char *path = ls_trainer_output(o, k);
    if (!ls_out_place(&out, path, e))
        return false;
    for (int j = 0; j < k && !out.through; j++) {
        const char *other = ls_trainer_output(o, j);
        if (other && strcmp(path, other) == 0)
            return ls_fail(e, LS_EXIT_USAGE, "%s and %s both write %s",
                           ls_trainer_table.row[j].name, ls_trainer_table.row[k].name, path);
    }
    return true;
}

/* The second file of --export is an output, too. */
static bool is_apart_from_data(const LsTrainerOptions *o, LsError *e)
{
    const size_t n = strlen(o->export_to);
    for (int k = 0; k < ls_trainer_table.n; k++) {
        const char *other = ls_trainer_output(o, k);
        if (other && strncmp(other, o->export_to, n) == 0 && strcmp(other + n, ".data") == 0)
            return ls_fail(e, LS_EXIT_USAGE, "--export writes its weights to %s, and %s writes it",
                           other, ls_trainer_table.row[k].name);
    }
    return true;
}

static bool check_predictions(const LsTrainerOptions *o, LsError *e)
{
    for (int k = 0; o->predict && k < ls_trainer_table.n; k++) {
        const char *other = ls_trainer_output(o, k);
        if (other && strcmp(other, o->predict) == 0)
            return ls_fail(e, LS_EXIT_USAGE, "--predict and %s both write %s",
                           ls_trainer_table.row[k].name, other);
    }
    return !o->predict
           || ls_predict_check(ls_predict_kind(o->predict, o->predict_as, e), o->predict, e);
}

bool ls_trainer_outputs_check(const LsTrainerOptions *o, const LsProgram *p, LsError *e)
{
    for (int k = 0; k < ls_trainer_table.n; k++)
        if (ls_trainer_output(o, k) != NULL
            && (!is_apart(o, k, e) || !ls_out_check(ls_trainer_output(o, k), e)))
            return false;
    return check_predictions(o, e)
           && (o->export_adapter == NULL
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
    ls_option_help(to, &ls_trainer_table);
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