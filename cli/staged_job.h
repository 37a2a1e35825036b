/* cli/staged_job.h -- compilation for a pipeline (--stages): the plan of every stage. */
#ifndef LS_CLI_STAGED_JOB_H
#define LS_CLI_STAGED_JOB_H

#include "cli/job.h"
#include "codegen/program/program_contents.h"

typedef struct LsStagedJob {
    LsOrderKind order;
    LsPipeCut cut;
    LsPipePlan *plan;           /* by stage */
    LsPipeFlow *flow;           /* by stage */
    LsCodeStage *code;          /* by stage */
    int64_t *fixed;             /* by stage: bytes of its rank beside the arena: state and input ring */
    uint32_t ring;              /* batches in the input ring */
} LsStagedJob;

/* Refuses what goes with no pipeline, and --order without one. 0 or the exit code. */
int ls_staged_check(const LsJob *job);
/* As ls_job_plan, with --stages: cuts the model into stages and plans each within the budget, which is that of a rank. */
int ls_staged_plan(LsJob *job);
/* ", 4 stages (1f1b), the largest rank 1.25 GiB"; empty without a pipeline. */
const char *ls_staged_text(const LsJob *job);
/* ns of a step, if the slowest stage never waits but for the first and the last micro-batch. */
double ls_staged_step_ns(const LsJob *job);

#endif
