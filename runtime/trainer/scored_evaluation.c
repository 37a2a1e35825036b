/* runtime/trainer/scored_evaluation.c -- see scored_evaluation.h. */
#include "runtime/trainer/scored_evaluation.h"

static const LsDataset *data_of(const LsTrainer *t)
{
    return t->val.p != NULL ? &t->val : &t->u.feed.train;
}

bool ls_scored_open(LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    if (o->infers != NULL || (t->val.p == NULL && !o->eval))
        return true;
    if (!ls_metrics_open(&t->reports.metrics, &t->u.engine, o->metrics, o->confusion != NULL,
                         o->eval, data_of(t), e))
        return false;
    return !o->by_class || (t->reports.metrics.chosen & LS_METRIC_PER_CLASS)
           || ls_fail(e, LS_EXIT_USAGE,
                      "--by-class: no metric by class is chosen; --metrics names precision, "
                      "recall, f1, iou or dice of programs whose loss is of classes or bits");
}

static void add(void *to, const char *name, double value, bool higher)
{
    ls_score_add(to, name, value, higher);
}

static void show(void *bar, int64_t done, int64_t of, double loss)
{
    const LsProgressAt at = {
        .what = "evaluation", .done = done, .of = of, .left = of - done, .loss = loss};
    if (bar != NULL)
        ls_progress_show(bar, &at);
}

bool ls_scored_evaluation(LsTrainer *t, const LsHook *extra, int nextra, LsProgress *bar,
                          LsScore *s, LsError *e)
{
    enum { HOOKS = 7 };
    LsMetrics *m = &t->reports.metrics;
    LsHook hook[HOOKS];
    int n = 0;
    for (; n < nextra && n < HOOKS - 1; n++)
        hook[n] = extra[n];
    ls_metrics_begin(m);
    if (ls_metrics_look(m))
        hook[n++] = ls_metrics_hook(m);
    const LsOnlooker by = {hook, n, t->ending.signal, show, bar};
    if (!ls_evaluate(&t->u, data_of(t), &by, s, e))
        return false;
    ls_metrics_each(m, s->loss, s, add);
    return true;
}
