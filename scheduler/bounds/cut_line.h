/* scheduler/bounds/cut_line.h -- what one cut proves for every budget. */
#ifndef LS_SCHEDULER_BOUNDS_CUT_LINE_H
#define LS_SCHEDULER_BOUNDS_CUT_LINE_H

#include "scheduler/bounds/cut_network.h"

/* Recomputations within a budget of B bytes cost at least value - sum of price[k] * (B - fixed[k])
 * grains. value is what ls_bound_net_solve returns for these prices. */
typedef struct LsBoundLine { int64_t value; double *price; } LsBoundLine;

/* What a line proves at a budget: whole grains, rounded down. Computed in integers, so it is the
 * same on every machine: each price * bytes is exact up to a fraction of a grain and rounded up,
 * the sum is exact, and one grain and 2^-48 of what was added up are taken off. Where the sum
 * would not fit 64 bits the line proves nothing: -2^62. */
double ls_bound_line_at(const LsBoundNet *net, const LsBoundLine *line, int64_t budget);

#endif
