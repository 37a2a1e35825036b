/* scheduler/blocks/block_keep.h -- what a range of blocks may keep for its backward part, and at
 * which price: kept memory, peak memory, recomputation. */
#ifndef LS_SCHEDULER_BLOCKS_BLOCK_KEEP_H
#define LS_SCHEDULER_BLOCKS_BLOCK_KEEP_H

#include "scheduler/blocks/block_work.h"
#include "scheduler/blocks/keep_option.h"

/* Returns the Pareto front, in these three figures, of options of blocks from .. to - 1. The
 * options come from min-cuts over the recomputable values of the blocks, for a row of prices per
 * byte. Values that later blocks read are always kept. Results come from `arena`. */
LsKeepOptions ls_block_options(LsArena *arena, LsBlockWork *w, uint32_t from, uint32_t to);

/* The same for options that keep nothing: every value that the backward part reads is recomputed
 * when it is read. The later blocks have finished by then. */
LsKeepOptions ls_block_anew(LsArena *arena, LsBlockWork *w, uint32_t from, uint32_t to);

/* The forward part alone, which keeps the values that later blocks read and those that cannot be
 * recomputed. */
typedef struct LsPass {
    int64_t kept, peak;         /* bytes, as in LsKeepOption */
    double cost;                /* cost of the nodes within the blocks that this needs */
} LsPass;

LsPass ls_block_pass(LsBlockWork *w, uint32_t from, uint32_t to);

#endif
