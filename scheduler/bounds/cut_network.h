/* scheduler/bounds/cut_network.h -- least cost for a price per byte at some separators, by a minimum cut.
 *
 * A separator is a node that every schedule runs. When it runs for the first time, everything it
 * waits for has run and everything that waits for it has not. For separators s1 .. sK, each of
 * which waits for the one before, and a group g and a tensor t of any schedule:
 *   later(g, k)   g runs at sk or after it        needed(t, k)  t is read after sk
 *   - what waits for sk, and sk: later(g, k); what later(g, k) reads: needed(t, k)
 *   - needed(t, k) but not later(maker of t, k): t is live at sk and stays; with all such t, sk's
 *     own operands, results and workspace fit the budget
 *   - later(g, k + 1) implies later(g, k)
 *   - g ran before the first separator that waits for it: if later there, it runs twice
 *   - what is paid twice unless a tensor stays (second_run_cost.h) is paid, or it stays
 * Everything but the budgets is a closure. With a price per byte at each separator in their
 * place (Lagrange), the least cost is a minimum cut, and a bound for every order and any number
 * of recomputations, whatever the prices. */
#ifndef LS_SCHEDULER_BOUNDS_CUT_NETWORK_H
#define LS_SCHEDULER_BOUNDS_CUT_NETWORK_H

#include "scheduler/algorithms/max_flow.h"
#include "scheduler/relaxation/group_graph.h"
#include "scheduler/relaxation/second_run_cost.h"

typedef struct LsBoundKeep {    /* an edge that is cut when a tensor stays at a separator */
    uint32_t edge, k, from, to; /* to: a vertex that is not cut off while the tensor stays */
    int64_t bytes;
} LsBoundKeep;

typedef struct LsBoundStay {    /* cut off unless a tensor stays where it is wanted */
    uint32_t vertex;
    int64_t cost;               /* grains, if it is */
} LsBoundStay;

typedef struct LsBoundAgain {   /* a group that may run at a separator or later */
    uint32_t vertex, group, k;
    int64_t cost;               /* grains, if this separator is the first to wait for it; else 0 */
} LsBoundAgain;

typedef struct LsBoundNet {
    const LsBoundGraph *b;
    uint32_t *sep, nsep;        /* places of the path, rising */
    int64_t *fixed;             /* by separator: its own bytes */
    double grain;               /* costs are whole numbers of grains, rounded down */
    LsFlow flow;
    bool *side;                 /* by vertex */
    bool *covered;              /* by form set and separator: its root is needed there, whatever
                                 * else is: the set says nothing, and its tensors count in full */
    uint32_t *tensor, *group;   /* vertex by separator and id, 0: none */
    LsBoundKeep *keep; uint32_t nkeep, keep_room;
    LsBoundAgain *again; uint32_t nagain, again_room;
    LsBoundStay *stay; uint32_t nstay, never;   /* never: a vertex that is always cut off */
    uint32_t *queue, nqueue, queue_room;    /* vertices to expand; as id * nsep + k */
    uint32_t *sure, nsure, sure_room;       /* vertices of tensors that are needed in any case */
    uint32_t nvertex;
    bool rigid;                 /* something that may not run twice must be kept */
} LsBoundNet;

/* Uses `arena` for all it makes. sep: places of the path, rising. */
LsBoundNet *ls_bound_net_new(LsArena *arena, const LsBoundGraph *b, const uint32_t *sep,
                             uint32_t nsep);

/* The least of cost + price * bytes kept. price: grains per byte, by separator. held[k]: bytes
 * kept at sk, beside its own, and *cost: grains, in one solution that attains it. returns a
 * number of grains that no schedule's recomputations and bytes go below. */
int64_t ls_bound_net_solve(LsBoundNet *net, const double *price, int64_t *cost, int64_t *held);

/* Bytes that every schedule holds at separator k, whatever it runs again. Leaves no flow that
 * ls_bound_net_solve could start from, but it starts from any. */
int64_t ls_bound_net_least(LsBoundNet *net, uint32_t k);

#endif
