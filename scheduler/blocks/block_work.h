/* scheduler/blocks/block_work.h -- what is there and what is still read while blocks run, and their
 * runs. */
#ifndef LS_SCHEDULER_BLOCKS_BLOCK_WORK_H
#define LS_SCHEDULER_BLOCKS_BLOCK_WORK_H

#include "scheduler/blocks/block_cuts.h"

typedef struct LsBlockWork {
    const LsBlocks *b;
    const LsProb *p;
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
} LsBlockWork;

#endif
