/* scheduler/lower_sets/partition_dp.h -- sequences of lower sets: Kusumoto's DP, Chen's segments. */
#ifndef LS_SCHEDULER_LOWER_SETS_PARTITION_DP_H
#define LS_SCHEDULER_LOWER_SETS_PARTITION_DP_H

#include "scheduler/lower_sets/lower_set.h"

/* A canonical strategy L1 < ... < Lk = V, and what the paper's formulas say of it. */
typedef struct LsStrategy {
    const uint64_t **cut; uint32_t ncut;
    int64_t peak;               /* bytes: 2 M(block) + kept so far + halo, the largest over blocks;
                                 * by ls_strategy_price only */
    double time;                /* of recomputation; the last block's counts only if asked */
} LsStrategy;

typedef struct LsDpOptions {
    int64_t budget;             /* bytes, of the formula's peak */
    bool greatest;              /* memory-centred: the greatest time;
                                 * else time-centred: the least */
    bool price_last;            /* count the last block as recomputed, as the paper does */
    /* branch_and_bound.h only */
    double unit;                /* times count as their nearest multiples of it; 0: as they are */
    uint64_t most_looks;        /* steps and states looked at; 0: 10^9, ten to fifty seconds */
    /* ls_partition only */
    uint32_t cells;             /* of the grid of times from none to that of everything */
    uint32_t most_points;       /* of a set's front of (kept bytes, time), at least 2 */
} LsDpOptions;

typedef struct LsStrategies { LsStrategy *item; uint32_t n; } LsStrategies;

/* The DP of Kusumoto et al. 2019 over the sets of `fam`, on a grid of times: strategies within the
 * budget that no other of these beats in both time and kept bytes, best time first. None when
 * nothing fits. With a cell for every time and room for all points there is nothing better; else
 * see branch_and_bound.h. Results and all that it works with come from `arena`. */
LsStrategies ls_partition(LsArena *arena, const LsForward *f, const LsFamily *fam,
                          const LsDpOptions *options);

/* Chen et al. 2016: segments between single-vertex cuts of at least 1/64 .. 64/64 of all bytes, and
 * sqrt(n) even parts. */
LsStrategies ls_chen(LsArena *arena, const LsForward *f);

/* Fills peak and time of a sequence by the formulas, from nothing. */
void ls_strategy_price(LsArena *scratch, const LsForward *f, bool price_last, LsStrategy *s);

#endif
