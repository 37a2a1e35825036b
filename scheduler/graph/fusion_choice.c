/* scheduler/graph/fusion_choice.c -- see the header.
 *
 * A value that every reader can compute itself need not be written. Starting with the cheapest
 * kernel for every node, the search tries one value after the other: its readers take the cheapest
 * kernels that do not read it. */
#include "scheduler/graph/fusion_choice.h"

#include <string.h>

typedef struct Variant {
    const LsProb *p;
    uint32_t *instead;          /* by node in use: the node that runs in its place */
    bool *gone;                 /* by tensor: no node reads it */
    uint32_t *first;            /* by tensor: the first node of the list that may read it */
    uint32_t *last;             /* by tensor: the last node that reads it, without alternatives */
    LsRows reader;              /* by tensor: the nodes in use that read it or whose alternatives
                                 * do */
} Variant;

static bool reads_gone(const Variant *x, uint32_t v)
{
    const LsProb *p = x->p;
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
        if (x->gone[p->in.id[k]])
            return true;
    return false;
}

static bool reads(const LsProb *p, uint32_t v, uint32_t t)
{
    return ls_id_in(p->in.id + p->in.at[v], p->in.at[v + 1] - p->in.at[v], t);
}

/* Returns whether alternative a of v makes its results in time, and does not keep large operands
 * live for itself in place of smaller ones. */
static bool fits(const Variant *x, uint32_t v, uint32_t a)
{
    const LsProb *p = x->p;
    int64_t more = 0, less = 0;
    for (uint32_t k = p->out.at[a]; k < p->out.at[a + 1]; k++)
        if (x->first[p->out.id[k]] <= a)
            return false;
    for (uint32_t k = p->in.at[a]; k < p->in.at[a + 1]; k++)
        if (x->last[p->in.id[k]] < v && !reads(p, v, p->in.id[k]))
            more += p->size[p->in.id[k]];
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
        if (!reads(p, a, p->in.id[k]))
            less += p->size[p->in.id[k]];
    return more <= less + less / 16;
}

/* Returns the cheapest of v and its alternatives that reads no `gone` tensor, or LS_NO_ID. */
static uint32_t cheapest(const Variant *x, uint32_t v)
{
    const LsProb *p = x->p;
    uint32_t best = reads_gone(x, v) ? LS_NO_ID : v;
    for (uint32_t k = p->swap.at[v]; k < p->swap.at[v + 1]; k++) {
        uint32_t a = p->swap.id[k];
        if ((best == LS_NO_ID || p->cost[a] < p->cost[best]) && fits(x, v, a) && !reads_gone(x, a))
            best = a;
    }
    return best;
}

static void find_readers(LsArena *arena, Variant *x)
{
    const LsProb *p = x->p;
    LsPairs readers = {0};
    for (uint32_t t = 0; t < p->nt; t++)
        x->first[t] = LS_NO_ID;
    for (uint32_t v = p->n; v-- > 0;)
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
            uint32_t t = p->in.id[k];
            x->first[t] = v;
            x->last[t] = p->needed[v] && v > x->last[t] ? v : x->last[t];
        }
    for (uint32_t v = 0; v < p->n; v++)
        for (uint32_t s = p->swap.at[v]; p->needed[v] && s <= p->swap.at[v + 1]; s++) {
            uint32_t u = s < p->swap.at[v + 1] ? p->swap.id[s] : v;
            for (uint32_t k = p->in.at[u]; k < p->in.at[u + 1]; k++)
                ls_pairs_add(arena, &readers, p->in.id[k], v);
        }
    x->reader = ls_rows(arena, &readers, p->nt);
}

/* Returns the cost saved when no node reads t: the run of its maker, if all its results are
 * unread. */
static double spared(const Variant *x, uint32_t t)
{
    const LsProb *p = x->p;
    uint32_t m = p->maker[t];
    if (p->dag->node[m].required || p->dag->node[m].nupd > 0)
        return 0;
    for (uint32_t k = p->out.at[m]; k < p->out.at[m + 1]; k++)
        if (!x->gone[p->out.id[k]])
            return 0;
    return p->cost[x->instead[m]];
}

/* Makes all readers avoid t if that costs at most `most`. */
static bool try_without(Variant *x, uint32_t t, double most)
{
    const LsProb *p = x->p;
    double more = 0;
    bool can = true;
    x->gone[t] = true;
    for (uint32_t k = x->reader.at[t]; can && k < x->reader.at[t + 1]; k++) {
        uint32_t v = x->reader.id[k], to = cheapest(x, v);
        can = to != LS_NO_ID;
        bool again = k > x->reader.at[t] && x->reader.id[k - 1] == v;
        more += can && !again ? p->cost[to] - p->cost[x->instead[v]] : 0;
    }
    x->gone[t] = can && more - spared(x, t) <= most;
    for (uint32_t k = x->reader.at[t]; x->gone[t] && k < x->reader.at[t + 1]; k++)
        x->instead[x->reader.id[k]] = cheapest(x, x->reader.id[k]);
    return x->gone[t];
}

const LsProb *ls_variant(LsArena *arena, const LsProb *p, double price)
{
    enum { ROUNDS = 3 };
    Variant x = {.p = p};
    double bytes = 1;
    bool any = false, more = p->swap.at[p->n] > 0;
    if (!more)
        return p;
    x.instead = ls_arena_alloc(arena, p->n + 1u, sizeof *x.instead);
    x.gone = ls_arena_alloc(arena, p->nt + 1u, sizeof *x.gone);
    x.first = ls_arena_alloc(arena, p->nt + 1u, sizeof *x.first);
    x.last = ls_arena_alloc(arena, p->nt + 1u, sizeof *x.last);
    find_readers(arena, &x);
    for (uint32_t t = 0; t < p->nt; t++)
        bytes += (double)p->size[t];
    for (uint32_t v = 0; v < p->n; v++)
        x.instead[v] = cheapest(&x, v);
    for (int k = 0; k < ROUNDS && more; k++) {
        more = false;
        for (uint32_t t = 0; t < p->nt; t++) {
            uint32_t m = p->maker[t];
            if (m == LS_NO_ID || x.gone[t] || !p->needed[m] || p->dag->tensor[t].output
                || x.reader.at[t] == x.reader.at[t + 1])
                continue;
            more |= try_without(&x, t, price * (double)p->size[t] / bytes * p->base_cost);
        }
    }
    for (uint32_t v = 0; v < p->n; v++)
        any |= p->used[v] && x.instead[v] != v;
    const LsProb *q = any ? ls_prob_variant(arena, p, x.instead) : NULL;
    return q != NULL ? q : p;
}
