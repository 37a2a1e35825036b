/* scheduler/bounds/lagrange_prices.h -- the prices per byte at the separators that prove most. */
#ifndef LS_SCHEDULER_BOUNDS_LAGRANGE_PRICES_H
#define LS_SCHEDULER_BOUNDS_LAGRANGE_PRICES_H

#include "scheduler/bounds/cut_line.h"

typedef struct LsBoundDual {
    LsBoundNet *net;
    LsBoundLine *line; uint32_t nline, line_room;
    double *price;              /* by separator: where to start; the best found afterwards */
    double *cost, *held;        /* by solution, and separator: grains, all bytes */
    bool *runs;                 /* by solution, and number in net->again: whether it runs twice */
    double *weight;             /* by solution: its share in the last step, or in the proof that
                                 * there is none */
    uint32_t nsolution;
    int8_t *choice;             /* by number in net->again: 1: it does, -1: it does not,
                                 * 0: free. While there is any, no lines are kept */
    uint32_t nchoice;
    bool reached;               /* the last search found a solution that fits and costs no more than
                                 * it proved */
    int64_t most;               /* grains: running everything again costs no more */
    uint32_t cuts;              /* solved so far */
} LsBoundDual;

LsBoundDual *ls_bound_dual_new(LsBoundNet *net);

/* Searches prices for a budget with at most ncut minimum cuts. Ends early when no more than
 * `enough` grains can be wanted, or the best is found. returns the grains proven, rounded down;
 * more than dual->most: nothing fits the budget. */
double ls_bound_dual_search(LsBoundDual *dual, int64_t budget, double enough, uint32_t ncut);

/* Decides what group number x of net->again does, from now on. */
void ls_bound_dual_choose(LsBoundDual *dual, uint32_t x, int8_t choice);

#endif
