/* scheduler/nested.h -- ranges of blocks that are made again within ranges that are made again: for
 * the tightest budgets. */
#ifndef LS_SCHEDULER_NESTED_H
#define LS_SCHEDULER_NESTED_H

#include "scheduler/block_ranges.h"
#include "scheduler/candidates.h"

/* Offers the phases, as a sequence of the problem of the ranges, which is the pool's or a variant
 * of it. */
void ls_block_ranges_offer(LsCandidates *pool, const LsBlockRanges *r, const LsPhase *phase,
                           uint32_t n);

/* Offers what is cheapest for a row of targets below half of the pool's first peak. */
void ls_nested_offer(LsCandidates *pool, const LsBlockRanges *r);

#endif
