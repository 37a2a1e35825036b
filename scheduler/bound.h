/* scheduler/bound.h -- what no schedule can beat: a certified lower bound on cost within a budget,
 * and on the least budget.
 *
 * Both hold for every order of runs, any number of recomputations, in-place reuse where the
 * problem allows it, and every use of alternatives. Bytes are those of the tensors themselves,
 * without padding, so the bounds hold for live peaks and for arenas alike. Sources: the separators
 * and their program are those of bound_net.h; Lagrangian relaxation, Geoffrion 1974. */
#ifndef LS_SCHEDULER_BOUND_H
#define LS_SCHEDULER_BOUND_H

#include "scheduler/prep.h"

/* All zeros: the usual effort. Efforts are counted, so results are the same everywhere. */
typedef struct LsBoundOptions {
    bool prove;                 /* many more separators, cuts, and a tree search */
    double enough;              /* cost of a known schedule: a bound that reaches it ends the
                                 * search; <= 0: none is known */
    uint32_t nsep, ncut;        /* separators, minimum cuts; 0: by the size of the graph */
} LsBoundOptions;

typedef struct LsBound {
    double cost;                /* no schedule within the budget costs less, ns */
    bool infeasible;            /* none is within the budget */
    int64_t least;              /* no schedule has a smaller live peak, bytes */
    uint32_t separator;         /* the node whose first run proves the most; LS_NO_ID: none */
    uint32_t nsep, ncut;        /* what was spent */
} LsBound;

/* budget <= 0: unlimited. Uses `arena` for the result only. */
LsBound ls_bound(LsArena *arena, const LsProb *p, int64_t budget, const LsBoundOptions *options);

/* cost[k]: no schedule within budget[k] costs less, ns; INFINITY: none is within it. Much cheaper
 * than n calls of ls_bound. */
void ls_bound_curve(LsArena *arena, const LsProb *p, const int64_t *budget, uint32_t n,
                    const LsBoundOptions *options, double *cost);

#endif
