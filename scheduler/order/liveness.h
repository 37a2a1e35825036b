/* scheduler/order/liveness.h -- what a sequence of node runs holds in memory, and costs. */
#ifndef LS_SCHEDULER_ORDER_LIVENESS_H
#define LS_SCHEDULER_ORDER_LIVENESS_H

#include "scheduler/graph/instance.h"

/* Node runs in order, repeats allowed. Every read takes the latest instance made before it; an
 * instance lives from the run that makes it to the last run that reads it. */
typedef struct LsSeq { uint32_t *node, n; } LsSeq;

typedef struct LsInstance {
    uint32_t tensor;
    uint32_t from, to;          /* first and last run that needs it; to = LsSeq.n: to the end */
    uint32_t heir;              /* instance that takes over its place at run `to`, or LS_NO_ID */
    uint32_t of;                /* instance whose place it takes over, or LS_NO_ID */
} LsInstance;

typedef struct LsLive {         /* buffers are kept from call to call */
    LsArena *arena;
    LsInstance *inst; uint32_t ninst, inst_room;
    uint32_t *first;            /* by run: its first instance; one more at the end */
    int64_t *mem;               /* by run: bytes, aligned sizes, with its workspace */
    uint32_t room;
    uint32_t *now;              /* by tensor: its latest instance */
    int64_t peak; uint32_t peak_run;
    double cost;
} LsLive;

/* Allocates in `arena`, later too. */
LsLive *ls_live_new(LsArena *arena, const LsProb *p);

/* O(runs and their operands). seq must make everything before it is read. */
void ls_live(const LsProb *p, const LsSeq *seq, LsLive *live);

#endif
