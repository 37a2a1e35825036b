/* scheduler/blocks/block_work.h -- working state while blocks run: tensors in memory, remaining
 * readers, the runs so far. */
#ifndef LS_SCHEDULER_BLOCKS_BLOCK_WORK_H
#define LS_SCHEDULER_BLOCKS_BLOCK_WORK_H

#include "scheduler/blocks/block_cuts.h"

typedef struct LsBlockWork {
    const LsBlocks *b;
    const LsProb *p;
    LsArena *arena;
    bool *there;                /* by tensor: in memory; true for all but those of the current
                                 * range */
    uint32_t *left;             /* by tensor: remaining readers behind the turn, and nodes that run
                                 * again */
    bool *later;                /* by tensor: read later on; all false between measurements */
    uint32_t *taken;            /* by tensor: used for in-place reuse by the run with this stamp */
    uint32_t *mark, stamp;      /* by node */
    uint32_t *stack;
    uint32_t first;             /* the block of the range whose backward part runs */
    uint32_t *run, nrun, run_room;
    double cost;                /* of all nodes before the turn */
    double bytes;               /* of all tensors */
} LsBlockWork;

#endif
