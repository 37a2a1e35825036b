/* cli/max_batch.h -- the largest batch whose training fits a budget. */
#ifndef LS_CLI_MAX_BATCH_H
#define LS_CLI_MAX_BATCH_H

#include "cli/options.h"

/* For each strategy, or the one that was asked for, the largest batch for which `plan` finds a plan
 * within the budget, and not for one more; printed as a table, or as JSON. 0 or the exit code. */
int ls_max_batch(const LsOptions *o);

#endif
