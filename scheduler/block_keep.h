/* scheduler/block_keep.h -- what some neighbouring blocks may keep for their backward part, and
 * what that takes: memory that stays, memory while it runs, and what is made again. */
#ifndef LS_SCHEDULER_BLOCK_KEEP_H
#define LS_SCHEDULER_BLOCK_KEEP_H

#include "scheduler/blocks.h"
#include "scheduler/live.h"

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

typedef struct LsChosen { uint32_t from, to; const LsKeepOption *option; } LsChosen;

/* The sequence in which the chosen blocks, all of them in a row, keep what they shall; in the
 * problem's arena. Valid whatever they keep: what is missing is made. */
LsSeq ls_block_sequence(LsBlockWork *w, const LsChosen *chosen, uint32_t n);

#endif
