/* scheduler/blocks/block_run.h -- the runs of blocks, forward and backward. */
#ifndef LS_SCHEDULER_BLOCKS_BLOCK_RUN_H
#define LS_SCHEDULER_BLOCKS_BLOCK_RUN_H

#include "scheduler/blocks/block_work.h"
#include "scheduler/blocks/keep_option.h"
#include "scheduler/order/liveness.h"

LsBlockWork *ls_block_work_new(LsArena *arena, const LsBlocks *b);

/* Before the backward part of blocks from .. to - 1: what is there, and who will read it. */
void ls_block_set_kept(LsBlockWork *w, uint32_t from, uint32_t to, const LsKeepOption *o);

/* Appends that backward part to the runs; what is missing is made just before it is read. */
void ls_block_run_back(LsBlockWork *w, uint32_t from, uint32_t to, bool brief);

/* Blocks from .. to - 1 run backward, with what the option keeps; NULL: forward, once more. */
typedef struct LsPhase { uint32_t from, to; const LsKeepOption *option; } LsPhase;

/* All blocks forward, then the phases in this order, of which every block has one backward; in
 * `arena`. Valid whatever the options keep: what is missing is made. */
LsSeq ls_block_sequence(LsArena *arena, LsBlockWork *w, const LsPhase *phase, uint32_t n);

#endif
