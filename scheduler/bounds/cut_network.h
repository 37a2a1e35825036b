/* scheduler/bounds/cut_network.h -- the least cost under prices per byte at some separators, by a
 * min-cut.
 *
 * A separator is a node that every schedule runs. When it runs for the first time, everything it
 * waits for has run and everything that waits for it has not. For separators s1 .. sK, each of
 * which waits for the one before, and a group g and a tensor t of any schedule:
 *   later(g, k)   g runs at sk or after it        needed(t, k)  t is read after sk
 *   - what waits for sk, and sk: later(g, k); what later(g, k) reads: needed(t, k)
 *   - needed(t, k) but not later(maker of t, k): t is live at sk and stays; all such t together
 * with sk's own operands, results and workspace fit the budget
 *   - later(g, k + 1) implies later(g, k)
 *   - g runs before the first separator that waits for it: if later there, it runs twice
 *   - what is paid twice unless a tensor stays (second_run_cost.h) is paid, or it stays
 * All conditions but the budgets form a closure problem. A Lagrangian multiplier, the price per
 * byte, replaces the budget at each separator. The least cost is then a min-cut, and for any prices
 * it is a lower bound for every order and any number of recomputations. */
#ifndef LS_SCHEDULER_BOUNDS_CUT_NETWORK_H
#define LS_SCHEDULER_BOUNDS_CUT_NETWORK_H

#include "scheduler/algorithms/max_flow.h"
#include "scheduler/relaxation/group_graph.h"
#include "scheduler/relaxation/second_run_cost.h"

typedef struct LsBoundKeep {    /* an edge that is cut when a tensor stays at a separator */
    uint32_t edge, k, from, to; /* while the tensor stays, `from` is on the source's side of the
                                 * cut, `to` on the sink's */
    int64_t bytes;
} LsBoundKeep;

typedef struct LsBoundStay {    /* a cost that is paid unless a tensor stays */
    uint32_t vertex;
    int64_t cost;               /* grains, if the vertex is on the sink's side */
} LsBoundStay;

typedef struct LsBoundAgain {   /* a group that may run at a separator or later */
    uint32_t vertex, group, k;
    int64_t cost;               /* grains, if this separator is the first that waits for the group;
                                 * else 0 */
} LsBoundAgain;

typedef struct LsBoundNet {
    const LsBoundGraph *b;
    uint32_t *sep, nsep;        /* places of the path, rising */
    int64_t *fixed;             /* by separator: bytes of its operands, results and workspace */
    double grain;               /* costs are whole numbers of grains, rounded down */
    LsFlow flow;
    bool *side;                 /* by vertex */
    bool *covered;              /* by form set and separator: its root is needed there in any case,
                                 * so the set does not count and its tensors count in full */
    uint32_t *tensor, *group;   /* vertex by separator and id, 0: none */
    LsBoundKeep *keep; uint32_t nkeep, keep_room;
    LsBoundAgain *again; uint32_t nagain, again_room;
    LsBoundStay *stay; uint32_t nstay, never;   /* never: a vertex always on the sink's side */
    uint32_t *queue, nqueue, queue_room;    /* vertices to expand, as id * nsep + k */
    uint32_t *sure, nsure, sure_room;       /* vertices of tensors that are needed in any case */
    uint32_t nvertex;
    bool rigid;                 /* a result of a node that may not run twice must be kept */
} LsBoundNet;

/* Allocates in `arena`. sep: places of the path, rising. */
LsBoundNet *ls_bound_net_new(LsArena *arena, const LsBoundGraph *b, const uint32_t *sep,
                             uint32_t nsep);

/* Minimizes cost + price * bytes kept. price: grains per byte, by separator. For one optimal
 * solution, held[k] has the bytes kept at sk, without its own, and *cost the grains. Returns a
 * lower bound on this sum for every schedule, grains. */
int64_t ls_bound_net_solve(LsBoundNet *net, const double *price, int64_t *cost, int64_t *held);

/* Returns the bytes that every schedule holds at separator k, whatever it recomputes. The flow it
 * leaves is no good start for ls_bound_net_solve, but a valid one. */
int64_t ls_bound_net_least(LsBoundNet *net, uint32_t k);

#endif
