/* cli/job/job_parts.h -- what the files of a job (cli/job/job.h) share among themselves. */
#ifndef LS_CLI_JOB_JOB_PARTS_H
#define LS_CLI_JOB_JOB_PARTS_H

#include "cli/job/job.h"

/* Loads everything but the plan without recomputation. 0 or the exit code, after diagnostics. */
int ls_job_load_model(LsJob *job);

/* Of an ensemble: takes the steps that are the same for all members out of the problem, unless
 * hints or policies speak of its nodes. False: the planner failed. ls_job_unshare puts them
 * back. */
bool ls_job_share(LsJob *job);
void ls_job_unshare(LsJob *job);

/* Plans a loaded job within its budget. False: no plan was found that keeps it. */
bool ls_job_plan_loaded(LsJob *job, const LsBudget *b);
/* Where no plan of the whole vocabulary head keeps a budget in bytes: puts a job with the head in
 * as few chunks of positions as need be in the place of *job, with its plan. With
 * --head-chunks=auto and the least budget: with the chunks whose plan takes least. False: *job
 * stays if it has a plan; else it is the job whose search found the least budget. */
bool ls_job_plan_chunks(LsJob *job, const LsBudget *b, bool planned);
/* Where no plan keeps a budget in bytes, and with --tiles=auto and the least budget: likewise a job
 * whose large values are tiled (codegen/tiling/tile_samples.h). */
bool ls_job_plan_tiles(LsJob *job, const LsBudget *b, bool planned);

/* Starts another job of the same options and settings, whose words go to `quiet`. */
bool ls_job_start_like(LsJob *to, const LsJob *job, FILE *quiet);
/* *job becomes the other one, which stays where it is: others point to its machine's name. */
void ls_job_take(LsJob *job, LsJob *other);

/* Plans without recomputation; false: the planner failed. ls_job_set_none takes that plan from a
 * report, instead. Both set job->none and job->whole. */
bool ls_job_plan_none(LsJob *job);
void ls_job_set_none(LsJob *job, const LsPlanReport *report);

/* Whether percentages of a budget are of the plan that stores all values in places of their own. */
bool ls_job_of_store_all(const LsOptions *o);

#endif
