/* cli/commands/sweep_measure.h -- builds and runs the programs of some plans of a sweep. */
#ifndef LS_CLI_COMMANDS_SWEEP_MEASURE_H
#define LS_CLI_COMMANDS_SWEEP_MEASURE_H

#include "cli/job/job.h"
#include "scheduler/plan/budget_sweep.h"

/* Fills in the measurements of a sweep: without recomputation, and at the n chosen points for the
 * last strategy or for every strategy. A plan that appears twice is built once. job: loaded from a
 * model, with its weights. 0 or the exit code, after diagnostics. */
int ls_sweep_measure(LsJob *job, LsSweep *sweep, const uint32_t *chosen, uint32_t n,
                     bool every_strategy);

#endif
