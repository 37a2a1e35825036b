/* cli/job/max_batch.h -- the largest batch whose training fits a budget. */
#ifndef LS_CLI_JOB_MAX_BATCH_H
#define LS_CLI_JOB_MAX_BATCH_H

#include "cli/options/options.h"

/* For each strategy, or the requested one, finds the largest batch for which `plan` finds a plan
 * within the budget but finds none for one sample more. Prints a table, or JSON. 0 or the exit
 * code. */
int ls_max_batch(const LsOptions *o);

#endif
