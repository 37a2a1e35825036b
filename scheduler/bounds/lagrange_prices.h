/* scheduler/bounds/lagrange_prices.h -- the Lagrangian multipliers, prices per byte at the
 * separators, that prove most. */
#ifndef LS_SCHEDULER_BOUNDS_LAGRANGE_PRICES_H
#define LS_SCHEDULER_BOUNDS_LAGRANGE_PRICES_H

#include "scheduler/bounds/cut_line.h"

typedef struct LsBoundDual {
    LsBoundNet *net;
    LsBoundLine *line; uint32_t nline, line_room;
    double *price;              /* by separator: the start of the search, then the best found */
    double *cost, *held;        /* by solution: grains; by solution and separator: all bytes */
    bool *runs;                 /* by solution and number in net->again: the group runs twice */
    double *weight;             /* by solution: its share in the last step, or in the proof that no
                                 * step is possible */
    uint32_t nsolution;
    int8_t *choice;             /* by number in net->again: 1: runs twice, -1: does not, 0: free.
                                 * While any group is fixed, no lines are kept */
    uint32_t nchoice;
    bool reached;               /* the last search found a solution that fits and costs no more than
                                 * the bound */
    int64_t most;               /* grains: the cost of running everything again */
    uint32_t cuts;              /* min-cuts solved so far */
} LsBoundDual;

LsBoundDual *ls_bound_dual_new(LsBoundNet *net);

/* Searches prices for a budget with at most ncut min-cuts. Ends early when `enough` grains are
 * proven or the best prices are found. Returns the grains proven, rounded down; more than
 * dual->most: nothing fits the budget. */
double ls_bound_dual_search(LsBoundDual *dual, int64_t budget, double enough, uint32_t ncut);

/* Fixes the choice for group number x of net->again from now on. */
void ls_bound_dual_choose(LsBoundDual *dual, uint32_t x, int8_t choice);

#endif
