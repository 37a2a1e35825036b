/* scheduler/blocks/block_ranges.h -- a row of blocks with what each range of neighbours may keep. */
#ifndef LS_SCHEDULER_BLOCKS_BLOCK_RANGES_H
#define LS_SCHEDULER_BLOCKS_BLOCK_RANGES_H

#include "scheduler/blocks/block_run.h"
#include "scheduler/candidates/candidate_pool.h"

typedef struct LsBlockRanges {
    LsBlocks *b;
    LsBlockWork *w;
    uint32_t longest;           /* range, in blocks */
    LsKeepOptions *options;     /* by place */
} LsBlockRanges;

/* At most `most` blocks; b->n is less than two where there is nothing to split. Ranges that look
 * alike have their options found once. */
LsBlockRanges ls_block_ranges(LsArena *arena, const LsProb *p, uint32_t most, LsBlockCuts cuts);

/* The place of blocks from .. to - 1, no more than `longest`, among all ranges. */
static inline size_t ls_block_ranges_place(const LsBlockRanges *r, uint32_t from, uint32_t to)
{
    return (size_t)from * r->longest + (to - from - 1);
}
static inline const LsKeepOptions *ls_block_ranges_at(const LsBlockRanges *r, uint32_t from,
                                                      uint32_t to)
{
    return &r->options[ls_block_ranges_place(r, from, to)];
}

/* Offers the phases, as a sequence of the problem of the ranges, which is the pool's or a variant
 * of it. */
void ls_block_ranges_offer(LsCandidates *pool, const LsBlockRanges *r, const LsPhase *phase,
                           uint32_t n);

#endif
