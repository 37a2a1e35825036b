/* scheduler/blocks/nested_blocks.h -- ranges of blocks that are made again within ranges that are made again: for
 * the tightest budgets. */
#ifndef LS_SCHEDULER_BLOCKS_NESTED_BLOCKS_H
#define LS_SCHEDULER_BLOCKS_NESTED_BLOCKS_H

#include "scheduler/blocks/block_ranges.h"

/* Offers what is cheapest for a row of targets below half of the pool's first peak. */
void ls_nested_offer(LsCandidates *pool, const LsBlockRanges *r);

#endif
