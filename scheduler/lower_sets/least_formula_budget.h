/* scheduler/lower_sets/least_formula_budget.h -- the least budget that some canonical strategy keeps. */
#ifndef LS_SCHEDULER_LOWER_SETS_LEAST_FORMULA_BUDGET_H
#define LS_SCHEDULER_LOWER_SETS_LEAST_FORMULA_BUDGET_H

#include "scheduler/lower_sets/lower_set.h"

/* Bytes, by the formula of the paper's peak (partition_dp.h) and to a thousandth: no less than the
 * least, and a strategy over the sets of `fam` keeps it. One must keep `some`. */
int64_t ls_least_budget(LsArena *scratch, const LsForward *f, const LsFamily *fam, int64_t some);

#endif
