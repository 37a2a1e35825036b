/* scheduler/lower_sets/least_formula_budget.h -- the least budget that some canonical strategy
 * fits. */
#ifndef LS_SCHEDULER_LOWER_SETS_LEAST_FORMULA_BUDGET_H
#define LS_SCHEDULER_LOWER_SETS_LEAST_FORMULA_BUDGET_H

#include "scheduler/lower_sets/lower_set.h"

/* Returns the least budget, bytes, by the paper's peak formula (partition_dp.h), rounded up by at
 * most a thousandth: a strategy over the sets of `fam` fits it. Some strategy must fit `some`. */
int64_t ls_least_budget(LsArena *scratch, const LsForward *f, const LsFamily *fam, int64_t some);

#endif
