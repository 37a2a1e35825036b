/* scheduler/pipeline/pipeline_simulation.h -- a step of the pipeline in time: ranks run their
 * flows, and links carry messages beside them. */
#ifndef LS_SCHEDULER_PIPELINE_PIPELINE_SIMULATION_H
#define LS_SCHEDULER_PIPELINE_PIPELINE_SIMULATION_H

#include "scheduler/pipeline/turn_order.h"

typedef struct LsLinkSpeed {    /* a message takes latency + bytes / bytes_per_ns; a link carries
                                 * one after the other */
    double latency;             /* ns */
    double bytes_per_ns;        /* 0: any number of bytes takes no time */
} LsLinkSpeed;

typedef struct LsStageTimes {   /* of a stage, ns */
    double ns[LS_STAGE_PHASES]; /* of a micro-batch, with recomputation; the late phase is that of a
                                 * step */
    double again;               /* recomputation among them */
} LsStageTimes;

typedef struct LsPipelineRun {
    const LsPipeCut *cut;
    const LsPipeFlow *flow;     /* by stage */
    uint32_t micros;
    LsStageTimes (*of)[LS_PIPE_PLANS];  /* by stage, and plan of the micro-batch; the late phase is
                                         * that of LS_PIPE_USUAL */
    LsLinkSpeed link;
} LsPipelineRun;

typedef struct LsRankTimes {
    const LsPipeFlow *flow;
    double *begin, *end;        /* by turn of the flow, ns */
    double busy;                /* ns */
} LsRankTimes;

typedef struct LsPipelineTimes {
    uint32_t k;
    bool joint;                 /* W is a part of B */
    LsRankTimes *rank;
    double step;                /* ns, to the end of the last rank, with what is sent and run once
                                 * per step; INFINITY: ranks wait for each other in a circle */
    double bubble;              /* share of the ranks' time in which they wait, before what happens
                                 * once per step */
} LsPipelineTimes;

/* Senders wait until receivers have asked for messages, as LsPipeMove says. */
LsPipelineTimes ls_pipeline_simulate(LsArena *arena, const LsPipelineRun *run);

#endif
