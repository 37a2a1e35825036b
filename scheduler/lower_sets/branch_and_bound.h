/* scheduler/lower_sets/branch_and_bound.h -- the best canonical strategy over a family of lower sets, with a proof. */
#ifndef LS_SCHEDULER_LOWER_SETS_BRANCH_AND_BOUND_H
#define LS_SCHEDULER_LOWER_SETS_BRANCH_AND_BOUND_H

#include "scheduler/lower_sets/partition_dp.h"

typedef struct LsExact LsExact;

typedef enum {
    LS_EXACT_NONE,              /* no strategy is within the budget */
    LS_EXACT_FOUND,             /* the best one */
    LS_EXACT_UNKNOWN            /* too much work: options->most_looks */
} LsExactEnd;

/* What the solves over one family share. projections: of completion_bound.h, at most; 0: 1000. More make the
 * bound closer and dearer; the result is the same. */
LsExact *ls_exact_new(LsArena *arena, const LsForward *f, const LsFamily *fam,
                      uint32_t projections);

/* The strategy within the budget with the least time of recomputation (options->greatest: with
 * the greatest), peak and time as the paper's formulas count them. Times within 1e-9 of the sum
 * of all count as the same. With options->unit it is the best by the rounded times. */
LsExactEnd ls_exact_solve(LsArena *arena, const LsExact *x, const LsDpOptions *options,
                          LsStrategy *out);

#endif
