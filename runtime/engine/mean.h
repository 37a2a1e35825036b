/* runtime/engine/mean.h -- one loss out of those of several batches.
 *
 * A mean over what counts in all of them: each batch's loss is a mean, too, and has the weight of what
 * counts in it. A batch of weight 0 has a sum instead of a mean (0, as a rule), as have all batches of
 * a loss that is a sum. Of nothing at all the mean is that sum: 0, not NaN. */
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

static inline double ls_mean(const LsMean *m) { return m->weight != 0 ? m->sum / m->weight : m->sum; }

#endif
