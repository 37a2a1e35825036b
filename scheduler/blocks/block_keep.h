/* scheduler/blocks/block_keep.h -- what some neighbouring blocks may keep for their backward part, and
 * what that takes: memory that stays, memory while it runs, and what is made again. */
#ifndef LS_SCHEDULER_BLOCKS_BLOCK_KEEP_H
#define LS_SCHEDULER_BLOCKS_BLOCK_KEEP_H

#include "scheduler/blocks/block_work.h"
#include "scheduler/blocks/keep_option.h"

/* Options of blocks from .. to - 1, none of which another beats in all three figures: of what can
 * be made again in the blocks, minimum cuts for a row of prices per byte. What later blocks
 * read is always kept. Results come from `arena`. */
LsKeepOptions ls_block_options(LsArena *arena, LsBlockWork *w, uint32_t from, uint32_t to);

/* The same of what keeps nothing: all that the backward part reads is made again when it does. The
 * blocks behind are done with. */
LsKeepOptions ls_block_anew(LsArena *arena, LsBlockWork *w, uint32_t from, uint32_t to);

/* The forward part alone, which keeps what later blocks read and what cannot be made again. */
typedef struct LsPass {
    int64_t kept, peak;         /* bytes, as in LsKeepOption */
    double cost;                /* of what that depends on, within the blocks */
} LsPass;

LsPass ls_block_pass(LsBlockWork *w, uint32_t from, uint32_t to);

#endif
