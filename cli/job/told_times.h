/* cli/job/told_times.h -- the times that people are told. Plans and files have the costs of one
 * machine, whichever computer makes them. People are told how long a step takes here: on one
 * machine for all precisions, with the program's own number of threads, at the speed that this
 * computer shows. */
#ifndef LS_CLI_JOB_TOLD_TIMES_H
#define LS_CLI_JOB_TOLD_TIMES_H

#include "cli/job/job.h"
#include "runtime/ls_program.h"

/* --threads: sets the machine of the times of this job. */
void ls_job_set_threads(LsJob *job);
/* From now on ls_job_plan_ns and those that build on it return what to tell people. A program for
 * this computer, without a calibration, --machine and --costs: takes some 50 ms for a probe, but if
 * LOWERSET_PROBE is off. */
void ls_job_tell_people(LsJob *job);
/* The times that a planned job's program carries: the same on every computer, by the costs of the
 * plan. */
LsPredicted ls_job_predict(LsJob *job);
/* "cpu, 2 threads": what these times are of. */
const char *ls_job_told_of(const LsJob *job);
/* The same of the costs of the plan; NULL: a training graph's are of nobody. */
const char *ls_job_costs_of(const LsJob *job);

#endif
