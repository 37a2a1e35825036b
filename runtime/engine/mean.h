/* runtime/engine/mean.h -- combines the losses of several batches.
 *
 * The result is a mean over everything that counts: each batch's loss is a mean weighted by what
 * counts in the batch. A batch of weight 0 has a sum instead of a mean (0, as a rule), as have all
 * batches of a loss that is a sum. If the total weight is 0, the result is the sum: 0, not NaN. */
#ifndef LS_RUNTIME_ENGINE_MEAN_H
#define LS_RUNTIME_ENGINE_MEAN_H

typedef struct LsLoss { double value, weight; } LsLoss;         /* of a batch */
typedef struct LsMean { double sum, weight; } LsMean;           /* starts as zeros */

static inline void ls_mean_add(LsMean *m, LsLoss l)
{
    m->sum += l.weight != 0 ? l.value * l.weight : l.value;
    m->weight += l.weight;
}

static inline void ls_mean_join(LsMean *m, const LsMean *more)
{
    m->sum += more->sum;
    m->weight += more->weight;
}

static inline double ls_mean(const LsMean *m)
{
    return m->weight != 0 ? m->sum / m->weight : m->sum;
}

#endif
