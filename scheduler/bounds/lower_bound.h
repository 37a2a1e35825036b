/* scheduler/bounds/lower_bound.h -- what no schedule can beat: a certified lower bound on cost within a budget,
 * and on the least budget.
 *
 * Both hold for every order of runs, any number of recomputations, in-place reuse where the
 * problem allows it, and every use of alternatives. Bytes are those of the tensors themselves,
 * without padding, so the bounds hold for live peaks and for arenas alike. Sources: the separators
 * and their program are those of cut_network.h; Lagrangian relaxation, Geoffrion 1974. */
#ifndef LS_SCHEDULER_BOUNDS_LOWER_BOUND_H
#define LS_SCHEDULER_BOUNDS_LOWER_BOUND_H

#include "scheduler/graph/instance.h"

/* All zeros: the usual effort. Efforts are counted, so results are the same everywhere. */
typedef struct LsBoundOptions {
    bool prove;                 /* many more separators, cuts, and a tree search */
    uint32_t effort;            /* cases and schedules tried, in percent of the usual; 0: 100 */
    bool relaxed;               /* never try all schedules of a small graph */
    uint32_t nsep, ncut;        /* separators, minimum cuts; 0: by the size of the graph */
} LsBoundOptions;

typedef struct LsBound {
    double cost;                /* no schedule within the budget costs less, ns */
    bool infeasible;            /* none is within the budget */
    int64_t least;              /* no schedule has a smaller live peak, bytes */
    uint32_t separator;         /* the node whose first run proves the most; LS_NO_ID: none */
    uint32_t nsep, ncut;        /* separators and cuts of the last search */
} LsBound;

/* Bounds of one problem for any number of budgets; p and what it refers to must last. */
typedef struct LsBounder LsBounder;

LsBounder *ls_bounder_new(const LsProb *p, const LsBoundOptions *options);

/* budget <= 0: unlimited. Whatever was proven for earlier budgets helps. enough: as in the
 * options. */
LsBound ls_bounder_at(LsBounder *bounder, int64_t budget, double enough);

/* cost[k]: no schedule within budget[k] costs less, ns; INFINITY: none is within it. Much cheaper
 * than n calls of ls_bounder_at: prices are searched for some of the budgets, and what they prove
 * for the others is used. */
void ls_bounder_curve(LsBounder *bounder, const int64_t *budget, uint32_t n, double *cost);

void ls_bounder_free(LsBounder *bounder);

/* One budget. */
LsBound ls_bound(const LsProb *p, int64_t budget, const LsBoundOptions *options);

#endif
