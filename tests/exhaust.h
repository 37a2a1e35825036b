/* tests/exhaust.h -- the best schedule of a tiny graph by trying everything, straight from the
 * rules of the interchange format. Shares nothing with the scheduler. */
#ifndef LS_TESTS_EXHAUST_H
#define LS_TESTS_EXHAUST_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/dag.h"

/* A state: the tensors that are live, and the nodes that have run. */
typedef struct Exhaust {
    const LsDag *g;
    bool inplace;
    double budget;              /* of live bytes; with peak: none */
    bool peak;                  /* least peak in place of least cost */
    double *best;               /* by state; < 0: not reached */
    bool *closed;
    uint32_t *heap; uint32_t nheap, heap_room;
    double *key;
} Exhaust;

static inline void exhaust_push(Exhaust *x, uint32_t state, double value)
{
    if (x->closed[state] || (x->best[state] >= 0 && x->best[state] <= value))
        return;
    x->best[state] = value;
    if (x->nheap == x->heap_room) {
        x->heap_room = 2 * x->heap_room + 1024;
        x->heap = realloc(x->heap, x->heap_room * sizeof *x->heap);
        x->key = realloc(x->key, x->heap_room * sizeof *x->key);
    }
    uint32_t at = x->nheap++;
    for (; at > 0 && x->key[(at - 1) / 2] > value; at = (at - 1) / 2) {
        x->key[at] = x->key[(at - 1) / 2];
        x->heap[at] = x->heap[(at - 1) / 2];
    }
    x->key[at] = value;
    x->heap[at] = state;
}

static inline uint32_t exhaust_pop(Exhaust *x)
{
    uint32_t top = x->heap[0], n = --x->nheap, at = 0;
    for (;;) {
        uint32_t kid = 2 * at + 1;
        if (kid + 1 < n && x->key[kid + 1] < x->key[kid])
            kid++;
        if (kid >= n || x->key[n] <= x->key[kid])
            break;
        x->key[at] = x->key[kid];
        x->heap[at] = x->heap[kid];
        at = kid;
    }
    x->key[at] = x->key[n];
    x->heap[at] = x->heap[n];
    return top;
}

/* Runs node v with every choice of the pairs from `pair` on. */
static inline void exhaust_run(Exhaust *x, uint32_t v, uint32_t live, uint32_t done, double value,
                               uint32_t pair, uint32_t taken, uint32_t placed)
{
    const LsDag *g = x->g;
    const LsDagNode *n = &g->node[v];
    for (; x->inplace && pair < n->ninplace; pair++) {
        uint32_t o = n->inplace[pair].out, i = n->inplace[pair].in;
        if (g->tensor[o].bytes <= g->tensor[i].bytes && (live >> i & 1) && !(taken >> i & 1)
            && !(placed >> o & 1))
            exhaust_run(x, v, live, done, value, pair + 1, taken | 1u << i, placed | 1u << o);
    }
    double bytes = (double)n->workspace;
    uint32_t after = live & ~taken;
    for (uint32_t t = 0; t < g->ntensor; t++)
        bytes += live >> t & 1 ? (double)g->tensor[t].bytes : 0;
    for (uint32_t k = 0; k < n->nout; k++) {
        bytes += placed >> n->out[k] & 1 ? 0 : (double)g->tensor[n->out[k]].bytes;
        after |= 1u << n->out[k];
    }
    double to = x->peak ? fmax(value, bytes) : value + n->cost;
    if (x->peak || bytes <= x->budget)
        exhaust_push(x, after | (done | 1u << v) << g->ntensor, to);
}

static inline bool exhaust_may_run(const LsDag *g, uint32_t v, uint32_t live, uint32_t done)
{
    const LsDagNode *n = &g->node[v];
    bool may = !((n->once || n->nupd > 0) && (done >> v & 1));
    for (uint32_t k = 0; k < n->nin; k++)
        may &= g->tensor[n->in[k]].persistent || (live >> n->in[k] & 1);
    for (uint32_t k = 0; k < n->nout; k++)
        may &= !(live >> n->out[k] & 1);
    for (uint32_t u = 0; u < g->nnode; u++)
        for (uint32_t k = 0; u != v && (done >> u & 1) && k < g->node[u].nupd; k++)
            may &= !ls_id_in(n->in, n->nin, g->node[u].upd[k]);
    return may;
}

/* The least cost within `budget`, or the least peak of live bytes; -1: no schedule. Nodes and
 * tensors together number at most 24. */
static inline double exhaust(const LsDag *g, bool inplace, bool peak, double budget)
{
    size_t n = (size_t)1 << (g->ntensor + g->nnode);
    Exhaust x = {.g = g, .inplace = inplace, .peak = peak, .budget = budget};
    x.best = malloc(n * sizeof *x.best);
    x.closed = calloc(n, sizeof *x.closed);
    for (size_t k = 0; k < n; k++)
        x.best[k] = -1;
    uint32_t must = 0, outputs = 0, all = (1u << g->ntensor) - 1;
    for (uint32_t v = 0; v < g->nnode; v++)
        must |= g->node[v].required || g->node[v].nupd > 0 ? 1u << v : 0;
    for (uint32_t t = 0; t < g->ntensor; t++)
        outputs |= g->tensor[t].output ? 1u << t : 0;
    double found = -1;
    exhaust_push(&x, 0, 0);
    while (x.nheap > 0 && found < 0) {
        double value = x.key[0];
        uint32_t state = exhaust_pop(&x), live = state & all, done = state >> g->ntensor;
        if (x.closed[state])
            continue;
        x.closed[state] = true;
        if ((live & outputs) == outputs && (done & must) == must)
            found = value;
        for (uint32_t t = 0; t < g->ntensor; t++)
            if (live >> t & 1)
                exhaust_push(&x, state & ~(1u << t), value);
        for (uint32_t v = 0; v < g->nnode; v++)
            if (exhaust_may_run(g, v, live, done))
                exhaust_run(&x, v, live, done, value, 0, 0, 0);
    }
    free(x.best);
    free(x.closed);
    free(x.heap);
    free(x.key);
    return found;
}

#endif
