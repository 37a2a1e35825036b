/* scheduler/bounds/bound_branching.h -- closes what the prices leave open: branch and bound over which groups
 * run twice. */
#ifndef LS_SCHEDULER_BOUNDS_BOUND_BRANCHING_H
#define LS_SCHEDULER_BOUNDS_BOUND_BRANCHING_H

#include "scheduler/bounds/lagrange_prices.h"

/* After ls_bound_dual_search with the same budget and `enough`, which proved `grains`: goes on by
 * cases until `work` is spent, about ns of time, but counted. returns the grains
 * proven, rounded down, at least what was given; INFINITY: nothing fits the budget. */
double ls_bound_tree(LsBoundDual *dual, int64_t budget, double enough, double grains,
                     uint64_t work);

#endif
