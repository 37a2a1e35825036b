/* scheduler/bounds/bound_branching.h -- raises the bound that the prices prove: branch and bound
 * over which groups run twice. */
#ifndef LS_SCHEDULER_BOUNDS_BOUND_BRANCHING_H
#define LS_SCHEDULER_BOUNDS_BOUND_BRANCHING_H

#include "scheduler/bounds/lagrange_prices.h"

/* Call it after ls_bound_dual_search with the same budget and `enough`, which proved `grains`.
 * Splits into cases until `work` is spent (counted, about ns of time). Returns the grains proven,
 * rounded down, at least `grains`; INFINITY: nothing fits the budget. */
double ls_bound_tree(LsBoundDual *dual, int64_t budget, double enough, double grains,
                     uint64_t work);

#endif
