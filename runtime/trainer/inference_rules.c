/* runtime/trainer/inference_rules.c -- options of predictions and metrics, and what they go
 * with. */
#include "runtime/predict/predict_run.h"
#include "runtime/trainer/trainer_options.h"

#include <string.h>

/* The first of these options that was given beside predictions, which have no use for it. */
static const char *useless(const LsTrainerOptions *o)
{
    return o->eval              ? "--eval"
           : o->val             ? "--val"
           : o->val_split       ? "--val-split"
           : o->metrics         ? "--metrics"
           : o->confusion       ? "--confusion"
           : o->by_class        ? "--by-class"
           : o->dump            ? "--dump"
           : o->trace           ? "--trace"
           : o->profile         ? "--profile"
           : o->log             ? "--log"
           : o->measure         ? "--measure"
           : o->check_numerics  ? "--check-numerics"
           : o->check_gradients ? "--check-gradients"
                                : NULL;
}

static bool fits_generation(const LsTrainerOptions *o, LsError *e)
{
    const char *of = o->prompt             ? "--prompt"
                     : o->temperature >= 0 ? "--temperature"
                     : o->top_k            ? "--top-k"
                     : o->top_p >= 0       ? "--top-p"
                                           : NULL;
    if (o->generate == 0)
        return of == NULL || ls_fail(e, LS_EXIT_USAGE, "%s is for --generate N, which is not given",
                                     of);
    if ((o->prompt == NULL) != o->serve_stdin)
        return ls_fail(e, LS_EXIT_USAGE,
                       o->serve_stdin ? "--prompt: with --serve-stdin the prompts are the lines of "
                                        "standard input"
                                      : "--generate continues a text or tokens: give --prompt");
    return o->top_p <= 1
           || ls_fail(e, LS_EXIT_USAGE, "--top-p: a probability, from 0 to 1");
}

bool ls_trainer_inference_fit(LsTrainerOptions *o, const LsProgram *p, LsError *e)
{
    const char *wants = o->predict       ? "--predict"
                        : o->serve_stdin ? "--serve-stdin"
                        : o->generate    ? "--generate"
                                         : NULL;
    if (o->help || o->version || o->print_plan)
        return true;
    if (!fits_generation(o, e))
        return false;
    if (o->predict_as && !o->predict)
        return ls_fail(e, LS_EXIT_USAGE, "--predict-as is for --predict OUT, which is not given");
    if (o->predict_outputs && (!wants || o->generate))
        return ls_fail(e, LS_EXIT_USAGE,
                       "--predict-outputs is for --predict and for --serve-stdin");
    if (wants == NULL)
        return (!o->metrics && !o->confusion && !o->by_class) || o->eval || o->val || o->val_split
               || ls_fail(e, LS_EXIT_USAGE,
                          "%s: the run evaluates nothing; give --val, --val-split or --eval",
                          o->metrics     ? "--metrics"
                          : o->confusion ? "--confusion"
                                         : "--by-class");
    if (o->predict && (o->generate || o->serve_stdin))
        return ls_fail(e, LS_EXIT_USAGE, "--predict and %s are two runs",
                       o->serve_stdin ? "--serve-stdin" : "--generate");
    if (!o->predict && o->data)
        return ls_fail(e, LS_EXIT_USAGE, "--data: %s takes its input from %s", wants,
                       o->serve_stdin ? "standard input" : "--prompt");
    const char *other = useless(o);
    if (other != NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       strcmp(other, "--val") == 0
                           ? "%s: predictions are of --data; %s would have no effect"
                           : "%s and %s do not go together: predictions have no loss, and no "
                             "evaluation is made",
                       strcmp(other, "--val") == 0 ? wants : other,
                       strcmp(other, "--val") == 0 ? other : wants);
    if (p->phase.eval.nstep == 0)
        return ls_fail(e, LS_EXIT_USAGE, "%s: this program has no evaluation form", wants);
    if (o->predict) {
        const LsPredictKind *kind = ls_predict_kind(o->predict, o->predict_as, e);
        if (kind == NULL)
            return false;
    }
    o->infers = wants;
    o->eval = true;
    return true;
}
