/* scheduler/blocks/block_ranges.h -- the row of blocks, with the keep options of every range of
 * neighbours. */
#ifndef LS_SCHEDULER_BLOCKS_BLOCK_RANGES_H
#define LS_SCHEDULER_BLOCKS_BLOCK_RANGES_H

#include "scheduler/blocks/block_run.h"
#include "scheduler/candidates/candidate_pool.h"

typedef struct LsBlockRanges {
    LsBlocks *b;
    LsBlockWork *w;
    uint32_t longest;           /* longest range, in blocks */
    LsKeepOptions *options;     /* by ls_block_ranges_place */
} LsBlockRanges;

/* Makes at most `most` blocks; b->n is below two if there is nothing to split. Ranges that look
 * alike share one computation of their options. */
LsBlockRanges ls_block_ranges(LsArena *arena, const LsProb *p, uint32_t most, LsBlockCuts cuts);

/* Returns the place of the range of blocks from .. to - 1, at most `longest` of them, among all
 * ranges. */
static inline size_t ls_block_ranges_place(const LsBlockRanges *r, uint32_t from, uint32_t to)
{
    return (size_t)from * r->longest + (to - from - 1);
}
static inline const LsKeepOptions *ls_block_ranges_at(const LsBlockRanges *r, uint32_t from,
                                                      uint32_t to)
{
    return &r->options[ls_block_ranges_place(r, from, to)];
}

/* Offers the phases as a sequence of the ranges' problem, which is the pool's or a variant of
 * it. */
void ls_block_ranges_offer(LsCandidates *pool, const LsBlockRanges *r, const LsPhase *phase,
                           uint32_t n);

#endif
