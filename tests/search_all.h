/* tests/search_all.h -- the least cost of any schedule within a number of live bytes: Dijkstra's
 * search over what is live and what has run that may run once. For tiny graphs. */
#ifndef LS_TESTS_SEARCH_ALL_H
#define LS_TESTS_SEARCH_ALL_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/dag.h"

typedef struct SearchAll {
    const LsDag *g;
    int64_t budget;
    int bit[64];                /* by tensor: of the state; -1: persistent */
    int done[64];               /* by node: bit that says it has run; -1: nobody asks */
    int nbit;
    double *cost;               /* by state */
    struct { double cost; uint32_t state; } *heap;
    uint32_t nheap, room;
} SearchAll;

enum { SEARCH_ALL_BITS = 20 };

static inline void sa_push(SearchAll *s, uint32_t state, double cost)
{
    if (cost >= s->cost[state])
        return;
    s->cost[state] = cost;
    if (s->nheap + 1 >= s->room) {
        s->room = 2 * s->room + 1024;
        s->heap = realloc(s->heap, s->room * sizeof *s->heap);
    }
    uint32_t k = s->nheap++;
    for (; k > 0 && s->heap[(k - 1) / 2].cost > cost; k = (k - 1) / 2)
        s->heap[k] = s->heap[(k - 1) / 2];
    s->heap[k].cost = cost, s->heap[k].state = state;
}

static inline uint32_t sa_pop(SearchAll *s, double *cost)
{
    uint32_t top = s->heap[0].state, k = 0;
    *cost = s->heap[0].cost;
    s->nheap--;
    for (;;) {
        uint32_t c = 2 * k + 1;
        if (c >= s->nheap)
            break;
        c += c + 1 < s->nheap && s->heap[c + 1].cost < s->heap[c].cost;
        if (s->heap[c].cost >= s->heap[s->nheap].cost)
            break;
        s->heap[k] = s->heap[c];
        k = c;
    }
    s->heap[k] = s->heap[s->nheap];
    return top;
}

/* Whether node v may run in the state, apart from memory. */
static inline bool sa_ready(const SearchAll *s, uint32_t state, uint32_t v)
{
    const LsDagNode *n = &s->g->node[v];
    if ((n->once || n->nupd > 0) && state >> s->done[v] & 1)
        return false;
    for (uint32_t k = 0; k < n->nin; k++) {
        if (s->bit[n->in[k]] >= 0 && !(state >> s->bit[n->in[k]] & 1))
            return false;
        for (uint32_t u = 0; u < s->g->nnode; u++)
            if (u != v && s->done[u] >= 0 && state >> s->done[u] & 1
                && ls_id_in(s->g->node[u].upd, s->g->node[u].nupd, n->in[k]))
                return false;
    }
    for (uint32_t k = 0; k < n->nout; k++)
        if (state >> s->bit[n->out[k]] & 1)
            return false;
    return true;
}

static inline int64_t sa_bytes(const SearchAll *s, uint32_t state)
{
    int64_t sum = 0;
    for (uint32_t t = 0; t < s->g->ntensor; t++)
        sum += s->bit[t] >= 0 && state >> s->bit[t] & 1 ? s->g->tensor[t].bytes : 0;
    return sum;
}

/* Runs v with the in-place pairs of the set, if they go together and fit. */
static inline void sa_run(SearchAll *s, uint32_t state, double cost, uint32_t v, uint32_t pairs)
{
    const LsDagNode *n = &s->g->node[v];
    uint32_t taken = 0, given = 0, out = 0;
    int64_t bytes = sa_bytes(s, state) + n->workspace;
    for (uint32_t k = 0; k < n->ninplace; k++) {
        LsDagPair p = n->inplace[k];
        if (!(pairs >> k & 1))
            continue;
        if (taken >> s->bit[p.in] & 1 || given >> s->bit[p.out] & 1
            || s->g->tensor[p.out].bytes > s->g->tensor[p.in].bytes)
            return;
        taken |= 1u << s->bit[p.in];
        given |= 1u << s->bit[p.out];
    }
    for (uint32_t k = 0; k < n->nout; k++) {
        out |= 1u << s->bit[n->out[k]];
        bytes += given >> s->bit[n->out[k]] & 1 ? 0 : s->g->tensor[n->out[k]].bytes;
    }
    if (bytes > s->budget)
        return;
    uint32_t ran = s->done[v] >= 0 ? 1u << s->done[v] : 0;
    sa_push(s, (state & ~taken) | out | ran, cost + n->cost);
}

static inline bool sa_is_end(const SearchAll *s, uint32_t state)
{
    for (uint32_t t = 0; t < s->g->ntensor; t++)
        if (s->g->tensor[t].output && s->bit[t] >= 0 && !(state >> s->bit[t] & 1))
            return false;
    for (uint32_t v = 0; v < s->g->nnode; v++) {
        const LsDagNode *n = &s->g->node[v];
        if (!n->alternative && (n->required || n->nupd > 0) && !(state >> s->done[v] & 1))
            return false;
    }
    return true;
}

/* -1: no schedule; -2: the graph is too large. */
static inline double search_all(const LsDag *g, int64_t budget)
{
    SearchAll s = {.g = g, .budget = budget};
    if (g->ntensor > 64 || g->nnode > 64)
        return -2;
    for (uint32_t t = 0; t < g->ntensor; t++)
        s.bit[t] = g->tensor[t].persistent ? -1 : s.nbit++;
    for (uint32_t v = 0; v < g->nnode; v++)
        s.done[v] = g->node[v].once || g->node[v].nupd || g->node[v].required ? s.nbit++ : -1;
    if (s.nbit > SEARCH_ALL_BITS)
        return -2;
    s.cost = malloc(sizeof *s.cost << s.nbit);
    for (uint32_t k = 0; k < 1u << s.nbit; k++)
        s.cost[k] = INFINITY;
    double found = -1;
    sa_push(&s, 0, 0);
    while (s.nheap > 0 && found < 0) {
        double cost;
        uint32_t state = sa_pop(&s, &cost);
        if (cost > s.cost[state])
            continue;
        if (sa_is_end(&s, state))
            found = cost;
        for (uint32_t t = 0; t < g->ntensor; t++)
            if (s.bit[t] >= 0 && state >> s.bit[t] & 1)
                sa_push(&s, state & ~(1u << s.bit[t]), cost);
        for (uint32_t v = 0; v < g->nnode; v++)
            for (uint32_t p = 0; sa_ready(&s, state, v) && p < 1u << g->node[v].ninplace; p++)
                sa_run(&s, state, cost, v, p);
    }
    free(s.cost);
    free(s.heap);
    return found;
}

#endif
