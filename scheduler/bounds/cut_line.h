/* scheduler/bounds/cut_line.h -- the lower bound that one cut proves, as a line over the budget. */
#ifndef LS_SCHEDULER_BOUNDS_CUT_LINE_H
#define LS_SCHEDULER_BOUNDS_CUT_LINE_H

#include "scheduler/bounds/cut_network.h"

/* Recomputation within a budget of B bytes costs at least value - sum of price[k] * (B - fixed[k])
 * grains. `value` is the result of ls_bound_net_solve for these prices. */
typedef struct LsBoundLine { int64_t value; double *price; } LsBoundLine;

/* Returns the lower bound of a line at a budget: whole grains, rounded down. Computed in integers,
 * so it is the same on every machine: each price * bytes is exact up to a fraction of a grain and
 * rounded up, the sum is exact, and one grain and 2^-48 of the sum's magnitude are taken off. If
 * the sum would not fit 64 bits the line proves nothing: -2^62. */
double ls_bound_line_at(const LsBoundNet *net, const LsBoundLine *line, int64_t budget);

#endif
