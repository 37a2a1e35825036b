/* scheduler/pipeline/flows.h -- messages between stages, those of one way and moment taken together. */
#ifndef LS_SCHEDULER_PIPELINE_FLOWS_H
#define LS_SCHEDULER_PIPELINE_FLOWS_H

#include "scheduler/pipeline/stages.h"

typedef struct LsFlow {         /* once per micro-batch, when the phase `made` of stage `from` has ended */
    uint32_t from, to;
    LsPipePhase made, read;         /* stage `to` begins phase `read` with it */
    int64_t bytes;
} LsFlow;

typedef struct LsFlows { LsFlow *flow; uint32_t n; } LsFlows;    /* by from, to, made, read */

/* joint: B and W are one phase, B, as in orders that run W right behind B. */
LsFlows ls_flows(LsArena *arena, const LsStages *s, bool joint);

/* Whether the order runs W apart from B. */
static inline bool ls_order_is_apart(LsOrderKind kind) { return kind == LS_ORDER_ZB; }

#endif
