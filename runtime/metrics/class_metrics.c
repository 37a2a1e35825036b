/* runtime/metrics/class_metrics.c -- what follows from the numbers of right predictions, labels and
 * predictions of each class. */
#include "runtime/metrics/metrics.h"

#include <math.h>

static bool is_absent(const LsClassCount *c) { return c->labels == 0 && c->said == 0; }

static double share(int64_t a, int64_t b) { return b > 0 ? (double)a / (double)b : 0; }

double ls_class_metric(const LsClassCount *c, LsMetricBit which)
{
    const int64_t either = c->labels + c->said - c->right;
    if (is_absent(c))
        return NAN;
    return which == LS_METRIC_PRECISION ? share(c->right, c->said)
           : which == LS_METRIC_RECALL  ? share(c->right, c->labels)
           : which == LS_METRIC_IOU     ? share(c->right, either)
                                        : share(2 * c->right, c->labels + c->said);
}

/* The mean over classes that are not absent. */
static double macro(const LsMetrics *m, LsMetricBit which)
{
    double sum = 0;
    int64_t n = 0;
    for (int64_t c = 0; c < m->columns; c++)
        if (!is_absent(&m->count[c])) {
            sum += ls_class_metric(&m->count[c], which);
            n++;
        }
    return n > 0 ? sum / (double)n : NAN;
}

/* The mean weighted by labels. */
static double weighted(const LsMetrics *m, LsMetricBit which)
{
    double sum = 0;
    int64_t n = 0;
    for (int64_t c = 0; c < m->columns; c++)
        if (m->count[c].labels > 0) {
            sum += (double)m->count[c].labels * ls_class_metric(&m->count[c], which);
            n += m->count[c].labels;
        }
    return n > 0 ? sum / (double)n : NAN;
}

/* All columns as one. */
static double micro(const LsMetrics *m, LsMetricBit which)
{
    LsClassCount all = {0};
    for (int64_t c = 0; c < m->columns; c++) {
        all.right += m->count[c].right;
        all.labels += m->count[c].labels;
        all.said += m->count[c].said;
    }
    return ls_class_metric(&all, which);
}

void ls_class_metrics_each(const LsMetrics *m, void *to,
                           void (*add)(void *, const char *, double, bool))
{
    static const struct {
        LsMetricBit bit;
        const char *one, *macro;
    } row[] = {{LS_METRIC_PRECISION, "val_precision", "val_precision_macro"},
               {LS_METRIC_RECALL, "val_recall", "val_recall_macro"},
               {LS_METRIC_F1, "val_f1", "val_f1_macro"}};
    const bool bits = m->task == LS_TASK_BITS, single = bits && m->columns == 1;
    for (int k = 0; k < 3; k++) {
        if (!(m->chosen & row[k].bit))
            continue;
        if (single || (!bits && m->columns == 2))       /* of what is yes, or class 1 */
            add(to, row[k].one, ls_class_metric(&m->count[single ? 0 : 1], row[k].bit), true);
        if (!single)
            add(to, row[k].macro, macro(m, row[k].bit), true);
    }
    if ((m->chosen & LS_METRIC_F1) && !single)
        add(to, "val_f1_weighted", weighted(m, LS_METRIC_F1), true);
    if ((m->chosen & LS_METRIC_F1) && bits && !single)
        add(to, "val_f1_micro", micro(m, LS_METRIC_F1), true);
    if (m->chosen & LS_METRIC_IOU)
        add(to, "val_iou", macro(m, LS_METRIC_IOU), true);
    if (m->chosen & LS_METRIC_DICE)
        add(to, "val_dice", macro(m, LS_METRIC_DICE), true);
}
