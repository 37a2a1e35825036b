/* scheduler/blocks/block_keep.h -- what some neighbouring blocks may keep for their backward part, and
 * what that takes: memory that stays, memory while it runs, and what is made again. */
#ifndef LS_SCHEDULER_BLOCKS_BLOCK_KEEP_H
#define LS_SCHEDULER_BLOCKS_BLOCK_KEEP_H

#include "scheduler/blocks/block_cuts.h"
#include "scheduler/order/liveness.h"

typedef struct LsKeepOption {
    bool *keep;                 /* by tensor that the blocks make, in the order of LsBlocks.made */
    bool brief;                 /* what is made again for another block than the one whose backward
                                 * part runs is made once more there, rather than held */
    int64_t kept;               /* bytes that stay from the forward to the backward part */
    int64_t peak;               /* most bytes at a time in either part, without what earlier blocks
                                 * keep; with gradients on their way to those */
    double again;               /* cost of what is made again */
} LsKeepOption;

typedef struct LsKeepOptions { LsKeepOption *item; uint32_t n; } LsKeepOptions;

typedef struct LsBlockWork LsBlockWork;

LsBlockWork *ls_block_work_new(LsArena *arena, const LsBlocks *b);

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

/* Blocks from .. to - 1 run backward, with what the option keeps; NULL: forward, once more. */
typedef struct LsPhase { uint32_t from, to; const LsKeepOption *option; } LsPhase;

/* All blocks forward, then the phases in this order, of which every block has one backward; in the
 * problem's arena. Valid whatever the options keep: what is missing is made. */
LsSeq ls_block_sequence(LsBlockWork *w, const LsPhase *phase, uint32_t n);

#endif
