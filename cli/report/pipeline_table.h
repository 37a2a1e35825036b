/* cli/report/pipeline_table.h -- pipelines as a table and as JSON. */
#ifndef LS_CLI_REPORT_PIPELINE_TABLE_H
#define LS_CLI_REPORT_PIPELINE_TABLE_H

#include "cli/job/staged_job.h"

typedef struct LsPipelines {
    LsJob *job;
    const LsProb *prob;
    LsPipelineWant want;
    LsPipelinePlan *plan; uint32_t n;
    LsStagesReason *reason;     /* by plan; with `why`, there is only its order and its mode */
    uint32_t chosen;            /* of `plan` */
    LsStages best, in_list_order;       /* for comparison: without budget and recomputation, the
                                         * best cut, and that in list order into equal times */
} LsPipelines;

/* The name of the plan's policy of recomputation. */
const char *ls_pipeline_mode(const LsPipelines *p, const LsPipelinePlan *of);

void ls_pipelines_print(const LsPipelines *p);

/* Prints {"schema": 1, "graph", "pipeline": {...}}. */
void ls_pipelines_json(FILE *to, const LsPipelines *p);

#endif
