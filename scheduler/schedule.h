/* scheduler/schedule.h -- the solution: an ordered list of steps, and where every byte lies. */
#ifndef LS_SCHEDULER_SCHEDULE_H
#define LS_SCHEDULER_SCHEDULE_H

#include "scheduler/dag.h"

typedef struct LsPlanStep {
    bool free;                  /* ends the present instance of tensor `id`; else: runs node `id` */
    bool again;                 /* run: not the node's first run */
    uint32_t id;
    uint32_t offset;            /* run: index into LsPlan.offset of its first result's place */
    int64_t workspace_offset;   /* run: bytes; -1: no workspace */
} LsPlanStep;

typedef struct LsPlan {
    const char *strategy;       /* that made it: "none", "chen", "exact-tc", … */
    LsPlanStep *step; uint32_t nstep;
    int64_t *offset; uint32_t noffset;      /* bytes in the arena, per result of each run */
    int64_t live_peak, arena;   /* bytes */
    double cost, base_cost;     /* overhead = cost / base_cost - 1 */
} LsPlan;

#endif
