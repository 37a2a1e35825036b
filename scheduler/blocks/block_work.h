/* scheduler/blocks/block_work.h -- what blocks run, as a list: for block_run.c and block_keep.c. */
#ifndef LS_SCHEDULER_BLOCKS_BLOCK_WORK_H
#define LS_SCHEDULER_BLOCKS_BLOCK_WORK_H

#include "scheduler/blocks/block_keep.h"

struct LsBlockWork {
    const LsBlocks *b;
    LsProb *p;
    LsArena *arena;
    bool *there;                /* by tensor; true for all but those of a range at work */
    uint32_t *left;             /* by tensor: readers behind the turn that are still to run, and
                                 * nodes that run again */
    bool *later;                /* by tensor: read further on; all false between measurements */
    uint32_t *taken;            /* by tensor: in place for the run with this stamp */
    uint32_t *mark, stamp;      /* by node */
    uint32_t *stack;
    uint32_t first;             /* block of the range whose backward part runs */
    uint32_t *run, nrun, run_room;
    double cost;                /* of everything before the turn */
    double bytes;               /* of all tensors */
};

/* Before the backward part of blocks from .. to - 1: what is there, and who will read it. */
void ls_block_set_kept(LsBlockWork *w, uint32_t from, uint32_t to, const LsKeepOption *o);

/* Appends that backward part to the runs; what is missing is made just before it is read. */
void ls_block_run_back(LsBlockWork *w, uint32_t from, uint32_t to, bool brief);

#endif
