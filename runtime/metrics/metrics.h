/* runtime/metrics/metrics.h -- what an evaluation tells of its predictions besides loss and
 * accuracy (--metrics), added up batch by batch.
 *
 * Classes: predicted is the class of the largest score, or of the largest mean probability of an
 * ensemble's members. Labels that the loss ignores are left out. Per class, with the right ones r,
 * labels l and predictions p: precision r/p, recall r/l, F1 and Dice 2r/(l+p), IoU r/(l+p-r); 0
 * where the denominator is. A class without labels and predictions is absent, and left out of
 * means; means weighted by labels have it with weight 0. Top 5 counts labels with fewer than five
 * classes of larger scores.
 *
 * Bits (bce): each element of axis 1 is a column, predicted where its score is above 0 (its
 * probability above 1/2). Means over columns are as those over classes.
 *
 * Values: MAE and MSE are means over all elements. R2 is the mean over the elements of a sample, of
 * 1 - squares of errors / squares of deviations from the mean label; where all labels are the same,
 * 1 or 0. A sample of more than 4096 elements is one column.
 *
 * AUROC: the area under the curve of true over false positives, by sorting all scores: ties
 * count half. Of two classes that of class 1; of more the mean over classes, each against the
 * rest, by its probability; classes or columns without labels of both kinds are left out. */
#ifndef LS_RUNTIME_METRICS_METRICS_H
#define LS_RUNTIME_METRICS_METRICS_H

#include "runtime/data/class_names.h"
#include "runtime/data/dataset.h"
#include "runtime/engine/engine.h"
#include "runtime/metrics/score_rows.h"

typedef enum {
    LS_METRIC_TOP5 = 1 << 0,
    LS_METRIC_CONFUSION = 1 << 1,
    LS_METRIC_PRECISION = 1 << 2,
    LS_METRIC_RECALL = 1 << 3,
    LS_METRIC_F1 = 1 << 4,
    LS_METRIC_IOU = 1 << 5,
    LS_METRIC_DICE = 1 << 6,
    LS_METRIC_AUROC = 1 << 7,
    LS_METRIC_PERPLEXITY = 1 << 8,
    LS_METRIC_MAE = 1 << 9,
    LS_METRIC_MSE = 1 << 10,
    LS_METRIC_R2 = 1 << 11
} LsMetricBit;
enum { LS_METRIC_PER_CLASS = LS_METRIC_PRECISION | LS_METRIC_RECALL | LS_METRIC_F1 | LS_METRIC_IOU
                             | LS_METRIC_DICE };

typedef enum { LS_TASK_NONE, LS_TASK_CLASSES, LS_TASK_BITS, LS_TASK_VALUES } LsTask;

typedef struct LsClassCount { int64_t right, labels, said; } LsClassCount;
typedef struct LsColumnSum { double mean, squares, errors; int64_t n; } LsColumnSum;

typedef struct LsMetrics {
    const LsEngine *g;
    LsTask task;
    unsigned chosen, named;     /* LsMetricBit; 0: nothing is counted. named: by its own name */
    const LsWatch *watch;       /* scores, bits or values; NULL: only the loss is read */
    uint32_t label;             /* input */
    int64_t columns;            /* classes, columns of bits, or elements of a sample of values */
    int64_t positions;          /* of a batch: positions of classes, else elements */
    LsClassNames classes;
    /* of one evaluation */
    int64_t counted;            /* positions, or elements */
    int64_t top5;
    double loss;                /* sum of -log of the labels' probabilities */
    double absolute, squares;
    LsClassCount *count;        /* [columns], or NULL */
    int64_t *confusion;         /* [columns][columns], label first, or NULL */
    LsColumnSum *column;        /* [columns], or NULL: of R2 */
    struct LsCurve *curve;      /* scores for AUROC, or NULL */
    /* room */
    char *copy;                 /* of the watched value, without gaps */
    double *row;                /* of one position */
    char *labels;               /* of a batch: on a device the next view takes the memory of one */
    double *mean;               /* of an ensemble: [positions][columns] or [positions] */
} LsMetrics;

/* list: --metrics, NULL: auto; confusion: asked for by --confusion. whole: the run is one
 * evaluation (auto then gives more). data: what is evaluated at most. False with an
 * LS_EXIT_USAGE error: a name is unknown, or the program or its size does not allow a metric
 * that was named. */
bool ls_metrics_open(LsMetrics *m, const LsEngine *g, const char *list, bool confusion, bool whole,
                     const LsDataset *data, LsError *e);
void ls_metrics_close(LsMetrics *m);
/* Before an evaluation. */
void ls_metrics_begin(LsMetrics *m);
/* Whether the evaluation needs the hook. */
bool ls_metrics_look(const LsMetrics *m);
LsHook ls_metrics_hook(LsMetrics *m);
/* Calls `add` with each result of the evaluation, whose mean loss that is. */
void ls_metrics_each(LsMetrics *m, double loss, void *to,
                     void (*add)(void *to, const char *name, double value, bool higher));

/* metric_report.c: a table by class; nothing without metrics by class. */
void ls_metrics_print(const LsMetrics *m, FILE *to);
bool ls_metrics_write_confusion(const LsMetrics *m, const char *path, LsError *e);

/* ---- parts, one file each ---- */
/* metric_choice.c: sets task, watch, label and chosen */
bool ls_metrics_choose(LsMetrics *m, const LsProgram *p, const char *list, bool confusion,
                       bool whole, LsError *e);
/* class_metrics.c: value[c] of that metric, NaN where the class is absent */
double ls_class_metric(const LsClassCount *c, LsMetricBit which);
void ls_class_metrics_each(const LsMetrics *m, void *to,
                           void (*add)(void *, const char *, double, bool));

#endif
