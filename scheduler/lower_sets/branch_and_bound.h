/* scheduler/lower_sets/branch_and_bound.h -- branch and bound for the best canonical strategy over
 * a family of lower sets. */
#ifndef LS_SCHEDULER_LOWER_SETS_BRANCH_AND_BOUND_H
#define LS_SCHEDULER_LOWER_SETS_BRANCH_AND_BOUND_H

#include "scheduler/lower_sets/partition_dp.h"

typedef struct LsExact LsExact;

typedef enum {
    LS_EXACT_NONE,              /* proven: no strategy is within the budget */
    LS_EXACT_FOUND,             /* the best strategy */
    LS_EXACT_UNKNOWN            /* the work exceeded options->most_looks */
} LsExactEnd;

/* Makes the data that solves over one family share. projections: most projections of
 * completion_bound.h; 0:
 * 1000. More of them give a closer but dearer bound and the same result. */
LsExact *ls_exact_new(LsArena *arena, const LsForward *f, const LsFamily *fam,
                      uint32_t projections);

/* Finds the strategy within the budget with the least time of recomputation (options->greatest: the
 * greatest), with peak and time by the paper's formulas. Times that differ by at most 1e-9 of the
 * sum of all count as equal. With options->unit the rounded times decide. */
LsExactEnd ls_exact_solve(LsArena *arena, const LsExact *x, const LsDpOptions *options,
                          LsStrategy *out);

#endif
