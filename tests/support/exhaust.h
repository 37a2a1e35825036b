/* tests/support/exhaust.h -- the best schedule of a tiny graph by exhaustive search, directly from
 * the rules of the interchange format: Dijkstra's search over states of live tensors, and of nodes
 * that have run where that matters. Shares no code with the scheduler. */
#ifndef LS_TESTS_SUPPORT_EXHAUST_H
#define LS_TESTS_SUPPORT_EXHAUST_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/graph/dag.h"

enum { EXHAUST_BITS = 22 };

typedef struct ExhaustEntry { double value; uint32_t state; } ExhaustEntry;

typedef struct Exhaust {
    const LsDag *g;
    bool inplace;
    bool peak;                  /* least peak in place of least cost */
    double budget;              /* of live bytes; with peak: none */
    int live[64];               /* by tensor: its bit of the state; -1: persistent */
    int ran[64];                /* by node: likewise; -1: not needed */
    int nbit;
    double *best;               /* by state; INFINITY: not reached */
    ExhaustEntry *heap; uint32_t nheap, room;
} Exhaust;

static inline bool exhaust_has(int bit, uint32_t state)
{
    return bit >= 0 && (state >> bit & 1);
}

static inline void exhaust_push(Exhaust *x, uint32_t state, double value)
{
    if (value >= x->best[state])
        return;
    x->best[state] = value;
    if (x->nheap == x->room) {
        x->room = 2 * x->room + 1024;
        x->heap = realloc(x->heap, x->room * sizeof *x->heap);
    }
    uint32_t at = x->nheap++;
    for (; at > 0 && x->heap[(at - 1) / 2].value > value; at = (at - 1) / 2)
        x->heap[at] = x->heap[(at - 1) / 2];
    x->heap[at] = (ExhaustEntry){value, state};
}

static inline ExhaustEntry exhaust_pop(Exhaust *x)
{
    ExhaustEntry top = x->heap[0], last = x->heap[--x->nheap];
    uint32_t at = 0;
    for (uint32_t kid; (kid = 2 * at + 1) < x->nheap; at = kid) {
        kid += kid + 1 < x->nheap && x->heap[kid + 1].value < x->heap[kid].value;
        if (x->heap[kid].value >= last.value)
            break;
        x->heap[at] = x->heap[kid];
    }
    x->heap[at] = last;
    return top;
}

/* Runs node v with every choice of the pairs from `pair` on; taken, given: bits of operands and
 * results of those that were chosen. */
static inline void exhaust_run(Exhaust *x, uint32_t v, ExhaustEntry from, uint32_t pair,
                               uint32_t taken, uint32_t given)
{
    const LsDag *g = x->g;
    const LsDagNode *n = &g->node[v];
    for (; x->inplace && pair < n->ninplace; pair++) {
        uint32_t o = n->inplace[pair].out, i = n->inplace[pair].in;
        if (g->tensor[o].bytes <= g->tensor[i].bytes && exhaust_has(x->live[i], from.state)
            && !exhaust_has(x->live[i], taken) && !exhaust_has(x->live[o], given))
            exhaust_run(x, v, from, pair + 1, taken | 1u << x->live[i], given | 1u << x->live[o]);
    }
    double bytes = (double)n->workspace;
    uint32_t after = from.state & ~taken;
    for (uint32_t t = 0; t < g->ntensor; t++)
        bytes += exhaust_has(x->live[t], from.state) ? (double)g->tensor[t].bytes : 0;
    for (uint32_t k = 0; k < n->nout; k++) {
        bytes += exhaust_has(x->live[n->out[k]], given) ? 0 : (double)g->tensor[n->out[k]].bytes;
        after |= 1u << x->live[n->out[k]];
    }
    if (x->ran[v] >= 0)
        after |= 1u << x->ran[v];
    if (x->peak || bytes <= x->budget)
        exhaust_push(x, after, x->peak ? fmax(from.value, bytes) : from.value + n->cost);
}

/* Whether node v may run in the state, apart from memory. */
static inline bool exhaust_may_run(const Exhaust *x, uint32_t v, uint32_t state)
{
    const LsDag *g = x->g;
    const LsDagNode *n = &g->node[v];
    bool may = !((n->once || n->nupd > 0) && exhaust_has(x->ran[v], state));
    for (uint32_t k = 0; k < n->nin; k++)
        may &= x->live[n->in[k]] < 0 || exhaust_has(x->live[n->in[k]], state);
    for (uint32_t k = 0; k < n->nout; k++)
        may &= !exhaust_has(x->live[n->out[k]], state);
    for (uint32_t u = 0; u < g->nnode; u++)
        for (uint32_t k = 0; u != v && k < g->node[u].nupd; k++)
            may &= !exhaust_has(x->ran[u], state) || !ls_id_in(n->in, n->nin, g->node[u].upd[k]);
    return may;
}

static inline bool exhaust_is_end(const Exhaust *x, uint32_t state)
{
    const LsDag *g = x->g;
    bool end = true;
    for (uint32_t t = 0; t < g->ntensor; t++)
        end &= !g->tensor[t].output || x->live[t] < 0 || exhaust_has(x->live[t], state);
    for (uint32_t v = 0; v < g->nnode; v++)
        end &= g->node[v].alternative || (!g->node[v].required && g->node[v].nupd == 0)
               || exhaust_has(x->ran[v], state);
    return end;
}

static inline double exhaust_search(Exhaust *x)
{
    exhaust_push(x, 0, 0);
    while (x->nheap > 0) {
        ExhaustEntry at = exhaust_pop(x);
        if (at.value > x->best[at.state])
            continue;
        if (exhaust_is_end(x, at.state))
            return at.value;
        for (uint32_t t = 0; t < x->g->ntensor; t++)
            if (exhaust_has(x->live[t], at.state))
                exhaust_push(x, at.state & ~(1u << x->live[t]), at.value);
        for (uint32_t v = 0; v < x->g->nnode; v++)
            if (exhaust_may_run(x, v, at.state))
                exhaust_run(x, v, at, 0, 0, 0);
    }
    return -1;
}

/* The least cost within `budget`, or the least peak of live bytes; -1: no schedule; -2: the graph
 * is too large. */
static inline double exhaust(const LsDag *g, bool inplace, bool peak, double budget)
{
    Exhaust x = {.g = g, .inplace = inplace, .peak = peak, .budget = budget};
    if (g->ntensor > 64 || g->nnode > 64)
        return -2;
    for (uint32_t t = 0; t < g->ntensor; t++)
        x.live[t] = g->tensor[t].persistent ? -1 : x.nbit++;
    for (uint32_t v = 0; v < g->nnode; v++)
        x.ran[v] = g->node[v].once || g->node[v].nupd || g->node[v].required ? x.nbit++ : -1;
    if (x.nbit > EXHAUST_BITS)
        return -2;
    size_t n = (size_t)1 << x.nbit;
    x.best = malloc(n * sizeof *x.best);
    for (size_t k = 0; k < n; k++)
        x.best[k] = INFINITY;
    double found = exhaust_search(&x);
    free(x.best);
    free(x.heap);
    return found;
}

#endif
