/* cli/report/stage_files.h -- lowerset plan --stages: the graph and the plan of every stage in the
 * interchange format.
 *
 * Each stage has files of its own: of g.json, that of stage 0 is g.0.json. They hold one
 * micro-batch, in slot 0, and what runs once per step behind it. */
#ifndef LS_CLI_REPORT_STAGE_FILES_H
#define LS_CLI_REPORT_STAGE_FILES_H

#include "cli/job/job.h"
#include "scheduler/pipeline/pipeline_plan.h"

/* Whether the files that --graph-json and --plan-json ask for could be written now. False after a
 * message. */
bool ls_stage_files_check(LsArena *arena, const LsOptions *o);
/* Writes them. False after a message. */
bool ls_stage_files_write(LsJob *job, const LsPipelinePlan *plan);

#endif
