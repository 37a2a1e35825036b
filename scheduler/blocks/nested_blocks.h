/* scheduler/blocks/nested_blocks.h -- nested recomputation of block ranges, for the tightest
 * budgets. */
#ifndef LS_SCHEDULER_BLOCKS_NESTED_BLOCKS_H
#define LS_SCHEDULER_BLOCKS_NESTED_BLOCKS_H

#include "scheduler/blocks/block_ranges.h"

/* Offers the cheapest nestings for a row of target peaks below half of the first candidate's
 * peak. */
void ls_nested_offer(LsCandidates *pool, const LsBlockRanges *r);

#endif
