/* scheduler/lower_sets/partition_dp.h -- sequences of lower sets: Kusumoto's DP, Chen's
 * segments. */
#ifndef LS_SCHEDULER_LOWER_SETS_PARTITION_DP_H
#define LS_SCHEDULER_LOWER_SETS_PARTITION_DP_H

#include "scheduler/lower_sets/lower_set.h"

/* A canonical strategy L1 < ... < Lk = V, with its figures by the paper's formulas. */
typedef struct LsStrategy {
    const uint64_t **cut; uint32_t ncut;
    int64_t peak;               /* bytes: the largest over blocks of 2 M(block) + kept so far +
                                 * halo; set by ls_strategy_price only */
    double time;                /* of recomputation; with the last block only if price_last */
} LsStrategy;

typedef struct LsDpOptions {
    int64_t budget;             /* bytes, of the formula's peak */
    bool greatest;              /* memory-centred: the greatest time;
                                 * else time-centred: the least */
    bool price_last;            /* count the last block as recomputed, as the paper does */
    /* branch_and_bound.h only */
    double unit;                /* times are rounded to multiples of it; 0: not rounded */
    uint64_t most_looks;        /* steps and states examined; 0: 10^9, ten to fifty seconds */
    /* ls_partition only */
    uint32_t cells;             /* cells of the grid of times from 0 to the time of everything */
    uint32_t most_points;       /* most points of a set's Pareto front of (kept bytes, time), at
                                 * least 2 */
} LsDpOptions;

typedef struct LsStrategies { LsStrategy *item; uint32_t n; } LsStrategies;

/* The DP of Kusumoto et al. 2019 over the sets of `fam`, on a grid of times. Returns the Pareto
 * front, in time and kept bytes, of the strategies found within the budget, best time first; empty
 * if nothing fits. With a cell for every time and room for all points the result is optimal; else
 * see branch_and_bound.h. Results and scratch come from `arena`. */
LsStrategies ls_partition(LsArena *arena, const LsForward *f, const LsFamily *fam,
                          const LsDpOptions *options);

/* Chen et al. 2016: segments between single-vertex cuts of at least 1/64 .. 64/64 of all bytes, and
 * sqrt(n) even parts. */
LsStrategies ls_chen(LsArena *arena, const LsForward *f);

/* Sets peak and time of a strategy from its cuts by the formulas. */
void ls_strategy_price(LsArena *scratch, const LsForward *f, bool price_last, LsStrategy *s);

#endif
