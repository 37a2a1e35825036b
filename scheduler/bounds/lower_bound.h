/* scheduler/bounds/lower_bound.h -- certified lower bounds on the cost within a budget and on the
 * least budget.
 *
 * Both bounds hold for every order of runs, any number of recomputations, in-place reuse where the
 * problem allows it, and every use of alternatives. Bytes are those of the tensors without padding,
 * so the bounds hold for live peaks and for arenas alike. Sources: the separators and their program
 * are those of cut_network.h; Lagrangian relaxation, Geoffrion 1974. */
#ifndef LS_SCHEDULER_BOUNDS_LOWER_BOUND_H
#define LS_SCHEDULER_BOUNDS_LOWER_BOUND_H

#include "scheduler/graph/instance.h"

/* All zeros: the usual effort. Efforts are counted, so results are the same everywhere. */
typedef struct LsBoundOptions {
    bool prove;                 /* many more separators, cuts, and a tree search */
    uint32_t effort;            /* cases and schedules tried, in percent of the usual; 0: 100 */
    bool relaxed;               /* never search all schedules of a small graph */
    uint32_t nsep, ncut;        /* numbers of separators and min-cuts; 0: by the size of the
                                 * graph */
} LsBoundOptions;

typedef struct LsBound {
    double cost;                /* lower bound on the cost of schedules within the budget, ns */
    bool infeasible;            /* no schedule is within the budget */
    int64_t least;              /* lower bound on the live peak of every schedule, bytes */
    uint32_t separator;         /* the node whose first run proves most; LS_NO_ID: none */
    uint32_t nsep, ncut;        /* separators and min-cuts of the last search */
} LsBound;

/* Computes bounds of one problem for any number of budgets; p and all that it points to must
 * outlast it. */
typedef struct LsBounder LsBounder;

LsBounder *ls_bounder_new(const LsProb *p, const LsBoundOptions *options);

/* budget: bytes; <= 0: unlimited. Proofs for earlier budgets are reused. enough: a bound of this
 * cost, ns, ends the search; <= 0: none does. */
LsBound ls_bounder_at(LsBounder *bounder, int64_t budget, double enough);

/* cost[k]: lower bound on the cost within budget[k], ns; INFINITY: no schedule fits. Much cheaper
 * than n calls of ls_bounder_at: prices are searched for some of the budgets and reused for the
 * others. */
void ls_bounder_curve(LsBounder *bounder, const int64_t *budget, uint32_t n, double *cost);

void ls_bounder_free(LsBounder *bounder);

/* Lower bound on the cost of schedules without a budget, ns: the bound of ls_bounder_at, from the
 * graph alone. */
double ls_bound_least_cost(const LsProb *p);

/* The bounds for one budget. */
LsBound ls_bound(const LsProb *p, int64_t budget, const LsBoundOptions *options);

#endif
