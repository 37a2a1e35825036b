/* scheduler/blocks/block_run.h -- writes the runs of blocks, forward and backward. */
#ifndef LS_SCHEDULER_BLOCKS_BLOCK_RUN_H
#define LS_SCHEDULER_BLOCKS_BLOCK_RUN_H

#include "scheduler/blocks/block_work.h"
#include "scheduler/blocks/keep_option.h"
#include "scheduler/order/liveness.h"

LsBlockWork *ls_block_work_new(LsArena *arena, const LsBlocks *b);

/* Sets the state before the backward part of blocks from .. to - 1: which tensors are in memory,
 * and who will read them. */
void ls_block_set_kept(LsBlockWork *w, uint32_t from, uint32_t to, const LsKeepOption *o);

/* Appends that backward part to the runs. Missing tensors are made just before they are read. */
void ls_block_run_back(LsBlockWork *w, uint32_t from, uint32_t to, bool brief);

/* Blocks from .. to - 1 run backward with the option's kept values; option NULL: they run forward
 * once more. */
typedef struct LsPhase { uint32_t from, to; const LsKeepOption *option; } LsPhase;

/* Returns, in `arena`, all blocks forward, then the phases in order, which must run every block
 * backward once. Valid for any options: missing tensors are made. */
LsSeq ls_block_sequence(LsArena *arena, LsBlockWork *w, const LsPhase *phase, uint32_t n);

#endif
