/* runtime/update/evaluate.h -- loss and accuracy of the evaluation form over a whole data set. */
#ifndef LS_RUNTIME_UPDATE_EVALUATE_H
#define LS_RUNTIME_UPDATE_EVALUATE_H

#include "runtime/update/training.h"

#include <signal.h>

enum { LS_METRICS = 32 };       /* of one evaluation */

/* A result of an evaluation, by the name that the log and --keep-best call it. */
typedef struct LsMetric {
    const char *name;           /* "val_loss"; lives as long as the program */
    double value;
    bool higher;                /* a higher one is better */
} LsMetric;

typedef struct LsScore {
    double loss;                /* mean over everything that counts (mean.h) */
    int64_t samples;
    int64_t right, judged;      /* correct predictions, all predictions; judged = 0: no
                                 * classification */
    bool whole;                 /* false: *stop ended it before the last batch that it was to take
                                 * (LsDataset.limit) */
    LsMetric metric[LS_METRICS];        /* all of them, val_loss first */
    int nmetric;
} LsScore;

/* No more than LS_METRICS are kept. */
void ls_score_add(LsScore *s, const char *name, double value, bool higher);
/* By a name with or without "val_" before it; NULL: the evaluation has none of that name. */
const LsMetric *ls_score_metric(const LsScore *s, const char *name);

/* Who looks on at an evaluation. */
typedef struct LsOnlooker {
    const LsHook *hook; int nhook;      /* called too */
    const volatile sig_atomic_t *stop;  /* not 0: it ends; NULL: nothing ends it */
    void (*show)(void *self, int64_t done, int64_t of, double loss);    /* after each batch; or
                                                                         * NULL */
    void *self;
} LsOnlooker;

/* Ends the loader's pass. Of an ensemble the loss is the mean of the members' losses, and a
 * prediction is that of the mean of their probabilities; t->members gets those of each. */
bool ls_evaluate(LsTraining *t, const LsDataset *data, const LsOnlooker *by, LsScore *score,
                 LsError *e);

#endif
