/* scheduler/order/liveness.h -- live ranges, live bytes and cost of a sequence of node runs. */
#ifndef LS_SCHEDULER_ORDER_LIVENESS_H
#define LS_SCHEDULER_ORDER_LIVENESS_H

#include "scheduler/graph/instance.h"

/* Node runs in order, repeats allowed. Every read takes the latest instance made before it. The
 * live range of an instance goes from the run that makes it to the last run that reads it. */
typedef struct LsSeq { uint32_t *node, n; } LsSeq;

typedef struct LsInstance {
    uint32_t tensor;
    uint32_t from, to;          /* live range, both inclusive; to = LsSeq.n: until the end */
    uint32_t heir;              /* instance that takes its place at run `to`, or LS_NO_ID */
    uint32_t of;                /* instance whose place it takes, or LS_NO_ID */
} LsInstance;

typedef struct LsLive {         /* its buffers are reused from call to call */
    LsArena *arena;
    LsInstance *inst; uint32_t ninst, inst_room;
    uint32_t *first;            /* by run: its first instance; one extra entry at the end */
    int64_t *mem;               /* by run: live bytes, of aligned sizes, with the run's workspace */
    uint32_t room;
    uint32_t *now;              /* by tensor: its latest instance */
    int64_t peak; uint32_t peak_run;
    double cost;
} LsLive;

/* Later calls of ls_live allocate in `arena`, too. */
LsLive *ls_live_new(LsArena *arena, const LsProb *p);

/* Computes *live in O(runs and their operands). seq must make every tensor before it is read. */
void ls_live(const LsProb *p, const LsSeq *seq, LsLive *live);

#endif
