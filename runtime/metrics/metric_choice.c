/* runtime/metrics/metric_choice.c -- which metrics an evaluation of this program has. */
#include "runtime/base/element.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/data/label_input.h"
#include "runtime/data/token_inputs.h"
#include "runtime/metrics/metrics.h"

#include <string.h>

static const struct {
    const char *name;
    LsMetricBit bit;
    unsigned tasks;             /* that have it: bits 1 << LsTask */
} row[] = {
    {"top5", LS_METRIC_TOP5, 1 << LS_TASK_CLASSES},
    {"confusion", LS_METRIC_CONFUSION, 1 << LS_TASK_CLASSES},
    {"precision", LS_METRIC_PRECISION, 1 << LS_TASK_CLASSES | 1 << LS_TASK_BITS},
    {"recall", LS_METRIC_RECALL, 1 << LS_TASK_CLASSES | 1 << LS_TASK_BITS},
    {"f1", LS_METRIC_F1, 1 << LS_TASK_CLASSES | 1 << LS_TASK_BITS},
    {"iou", LS_METRIC_IOU, 1 << LS_TASK_CLASSES | 1 << LS_TASK_BITS},
    {"dice", LS_METRIC_DICE, 1 << LS_TASK_CLASSES | 1 << LS_TASK_BITS},
    {"auroc", LS_METRIC_AUROC, 1 << LS_TASK_CLASSES | 1 << LS_TASK_BITS},
    {"perplexity", LS_METRIC_PERPLEXITY, 1 << LS_TASK_CLASSES},
    {"mae", LS_METRIC_MAE, 1 << LS_TASK_VALUES},
    {"mse", LS_METRIC_MSE, 1 << LS_TASK_VALUES},
    {"r2", LS_METRIC_R2, 1 << LS_TASK_VALUES},
};
enum { NROWS = sizeof row / sizeof *row };

static int64_t one(const LsTensor *t)
{
    return ls_tensor_count(t) / (t->members > 0 ? t->members : 1);
}

/* Class scores, and a label for each position. */
static const LsWatch *scores(const LsProgram *p, uint32_t label)
{
    const LsWatch *w = ls_scores_watched(p);
    if (w == NULL || label == p->ninput)
        return NULL;
    const LsTensor *t = &w->t, *l = &p->input[label].t;
    const bool fits = ls_holds_reals(t->type) && p->target.class_axis < t->rank
                      && (l->type == LS_DT_I64 || l->type == LS_DT_I32)
                      && one(t) == one(l) * t->dim[p->target.class_axis];
    return fits ? w : NULL;
}

static void find_task(LsMetrics *m, const LsProgram *p)
{
    m->label = ls_label_input(p);
    if (p->target.classes > 0) {
        m->watch = scores(p, m->label);
        m->task = m->watch != NULL || p->target.plain ? LS_TASK_CLASSES : LS_TASK_NONE;
    } else if (p->target.compared > 0 && m->label < p->ninput) {
        m->watch = &p->phase.eval.watch[p->target.compared - 1];
        m->task = p->target.bits ? LS_TASK_BITS : LS_TASK_VALUES;
    }
}

/* What the task is usually told by. Training gives what costs nothing. */
static unsigned usual(const LsMetrics *m, const LsProgram *p, bool whole)
{
    const bool tokens = m->task == LS_TASK_CLASSES && ls_tokens_of_sample(p) > 0;
    if (tokens)
        return p->target.plain || whole ? LS_METRIC_PERPLEXITY : 0;
    if (!whole)
        return 0;
    if (m->task == LS_TASK_VALUES)
        return LS_METRIC_MAE | LS_METRIC_MSE | LS_METRIC_R2;
    const unsigned each = LS_METRIC_PRECISION | LS_METRIC_RECALL | LS_METRIC_F1;
    if (m->task == LS_TASK_BITS)
        return each;
    if (m->watch == NULL)
        return 0;
    if (m->watch->t.rank > 2)   /* a label for each place: segmentation */
        return LS_METRIC_IOU | LS_METRIC_DICE;
    return each | (p->target.classes > 5 ? LS_METRIC_TOP5 : 0);
}

static unsigned fitting(const LsMetrics *m, const LsProgram *p)
{
    unsigned all = 0;
    for (int k = 0; k < NROWS; k++)
        if (row[k].tasks >> m->task & 1)
            all |= row[k].bit;
    if (m->task == LS_TASK_CLASSES && m->watch == NULL)
        all &= LS_METRIC_PERPLEXITY;
    if (p->target.classes <= 5)
        all &= ~(unsigned)LS_METRIC_TOP5;
    return all;
}

static const char *task_name(const LsMetrics *m, const LsProgram *p)
{
    return m->task == LS_TASK_VALUES    ? "its loss compares values"
           : m->task == LS_TASK_BITS    ? "its loss is of yes or no"
           : m->task == LS_TASK_NONE    ? "its loss compares no output with a target"
           : m->watch == NULL           ? "it keeps no scores of all classes (--head-chunks)"
           : p->target.classes <= 5     ? "its loss is of classes, at most five"
                                        : "its loss is of classes";
}

static bool name(unsigned *named, unsigned fit, const LsMetrics *m, const LsProgram *p,
                 const char *text, size_t n, LsError *e)
{
    for (int k = 0; k < NROWS; k++) {
        if (strlen(row[k].name) != n || memcmp(row[k].name, text, n) != 0)
            continue;
        *named |= row[k].bit;
        return (fit & row[k].bit) != 0
               || ls_fail(e, LS_EXIT_USAGE, "--metrics: this program has no %s: %s", row[k].name,
                          task_name(m, p));
    }
    return ls_fail(e, LS_EXIT_USAGE,
                   "--metrics: '%.*s' must be auto, all, none, top5, confusion, precision, recall, "
                   "f1, iou, dice, auroc, perplexity, mae, mse or r2",
                   (int)(n < 60 ? n : 60), text);
}

bool ls_metrics_choose(LsMetrics *m, const LsProgram *p, const char *list, bool confusion,
                       bool whole, LsError *e)
{
    find_task(m, p);
    const unsigned fit = fitting(m, p);
    const char *at = list != NULL ? list : "auto";
    while (*at != '\0') {
        const size_t n = strcspn(at, ",");
        if (n == 4 && memcmp(at, "auto", n) == 0)
            m->chosen |= usual(m, p, whole) & fit;
        else if (n == 3 && memcmp(at, "all", n) == 0)
            m->chosen |= fit;
        else if (!(n == 4 && memcmp(at, "none", n) == 0)
                 && !name(&m->named, fit, m, p, at, n, e))
            return false;
        at += n + (at[n] == ',');
    }
    if (confusion && !(fit & LS_METRIC_CONFUSION))
        return ls_fail(e, LS_EXIT_USAGE, "--confusion: this program has no table of confusion: %s",
                       task_name(m, p));
    m->named |= confusion ? LS_METRIC_CONFUSION : 0;
    m->chosen |= m->named;
    return true;
}
