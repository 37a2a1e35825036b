/* scheduler/pipeline/pipeline_simulation.h -- a step of the pipeline in time and memory: ranks run their orders, and links
 * carry messages beside them. */
#ifndef LS_SCHEDULER_PIPELINE_PIPELINE_SIMULATION_H
#define LS_SCHEDULER_PIPELINE_PIPELINE_SIMULATION_H

#include "scheduler/pipeline/flows.h"

typedef struct LsLinkSpeed {    /* a message takes latency + bytes / bytes_per_ns; a link carries one after the other */
    double latency;             /* ns */
    double bytes_per_ns;        /* 0: any number of bytes takes no time */
} LsLinkSpeed;

typedef struct LsPipelineRun {
    const LsStages *stages;
    LsOrderKind order;
    uint32_t micros;
    const LsStageFigures *of;   /* by stage: of a micro-batch */
    const LsStageFigures *first;        /* by stage: of micro-batch 0 */
    LsLinkSpeed link;
} LsPipelineRun;

typedef struct LsRankTimes {
    LsRankOrder order;
    double *begin, *end;        /* by step of the order, ns; of W in orders that run it with B: the end of both */
    double busy;                /* ns */
    int64_t peak;               /* bytes: state, micro-batches, and messages that were not yet sent or read */
} LsRankTimes;

typedef struct LsPipelineTimes {
    uint32_t k;
    bool joint;                 /* the times of B are those of B and W together */
    LsRankTimes *rank;
    double step;                /* ns, to the end of the last rank and of what is sent once per step */
    double bubble;              /* share of the ranks' time in which they wait, before what is sent once per step */
} LsPipelineTimes;

/* The orders must run (deadlock.h, with room for all messages). */
LsPipelineTimes ls_pipeline_simulate(LsArena *arena, const LsPipelineRun *run);

#endif
