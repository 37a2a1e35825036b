/* cli/job/staged_job.h -- compilation for a pipeline (--stages): the plan of every stage. */
#ifndef LS_CLI_JOB_STAGED_JOB_H
#define LS_CLI_JOB_STAGED_JOB_H

#include "cli/job/job.h"
#include "codegen/planning/stage_problem.h"
#include "codegen/program/program_contents.h"
#include "scheduler/pipeline/pipeline_plan.h"

typedef struct LsStagedJob {
    LsPipelinePlan plan;
    LsCodeStage *code;          /* by stage */
} LsStagedJob;

/* Refuses what goes with no pipeline, and --order without one. 0 or the exit code. */
int ls_staged_check(const LsJob *job);
/* Reads the options of a pipeline: budget, search, link; into *order and *mode -1 without --order
 * and --recompute. To be completed by ls_staged_open. 0 or the exit code. */
int ls_staged_want(const LsOptions *o, LsPipelineWant *want, int *order, int *mode);
/* Completes *want for a loaded job. Returns the graph to be cut. */
const LsProb *ls_staged_open(LsJob *job, LsPipelineWant *want);
/* Makes a pipeline, and has it audited: each stage's plan with one micro-batch, and with all that
 * are under way. False: after diagnostics, or with reason->why, as the graph has no such pipeline.
 * out->fits says whether it keeps the budget. */
bool ls_staged_find(LsJob *job, const LsProb *p, const LsPipelineWant *want, LsOrderKind order,
                    LsKeepMode keep, LsPipelinePlan *out, LsStagesReason *reason);
/* Returns false after a diagnostic, if there is none yet. */
bool ls_staged_refuse(LsJob *job, const LsStagesReason *reason);
/* The hash of the plans of all stages and of their order. */
void ls_staged_hash(const LsPipelinePlan *plan, char hash[17]);
/* As ls_job_plan, with --stages: cuts the model into stages and plans each within the budget, which
 * is that of a rank. */
int ls_staged_plan(LsJob *job);
/* ", 4 stages (1f1b), the largest rank 1.25 GiB"; empty without a pipeline. */
const char *ls_staged_text(const LsJob *job);
/* ns of a step, by the simulation of lowerset plan. */
double ls_staged_step_ns(const LsJob *job);

#endif
