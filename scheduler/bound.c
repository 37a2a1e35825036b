/* scheduler/bound.c -- chooses separators, has their prices searched, and rounds safely. */
#include "scheduler/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/bound_dual.h"

typedef struct Bounder {
    LsArena *arena;             /* scratch */
    const LsProb *p;
    const LsBoundOptions *o;
    LsBoundGraph *b;
    LsBoundNet *net;
    LsBoundDual *dual;
    int64_t least;
} Bounder;

static uint32_t default_separators(const Bounder *c)
{
    uint32_t n = c->p->n + 1, sep = 6000 / n;
    if (c->o->nsep > 0)
        return c->o->nsep;
    sep = sep < 4 ? 4 : sep > 24 ? 24 : sep;
    return c->o->prove ? 3 * sep : sep;
}

static uint32_t default_cuts(const Bounder *c)
{
    if (c->o->ncut > 0)
        return c->o->ncut;
    return c->o->prove ? 300 : c->p->n < 2000 ? 50 : 25;
}

/* Places of the path that are crowded beyond the budget, about as many in every stretch of equal
 * excess; in each stretch the most crowded. */
static uint32_t choose_separators(const Bounder *c, int64_t budget, uint32_t want, uint32_t *sep)
{
    const LsBoundGraph *b = c->b;
    double total = 0, sum = 0;
    uint32_t n = 0, stretch = UINT32_MAX;
    for (uint32_t j = 0; j < b->npath; j++)
        total += b->crowd[j] > budget ? (double)(b->crowd[j] - budget) : 0;
    for (uint32_t j = 0; j < b->npath; j++) {
        if (b->crowd[j] <= budget)
            continue;
        double part = (double)(b->crowd[j] - budget);
        uint32_t at = (uint32_t)(want * ((sum + part / 2) / total));
        sum += part;
        if (n > 0 && at == stretch && b->crowd[sep[n - 1]] >= b->crowd[j])
            continue;
        n -= n > 0 && at == stretch;
        stretch = at;
        sep[n++] = j;
    }
    return n;
}

/* What any schedule takes: its outputs at the end, every needed node while it runs. */
static int64_t plain_least(const LsBoundGraph *b)
{
    int64_t least = 0;
    for (uint32_t t = 0; t < b->p->nt; t++)
        least += b->p->dag->tensor[t].output ? ls_bound_bytes(b->p, t) : 0;
    for (uint32_t v = 0; v < b->p->n; v++)
        least = b->needed[v] && b->own[v] > least ? b->own[v] : least;
    return least;
}

static void open_bounder(Bounder *c, const LsProb *p, const LsBoundOptions *o)
{
    *c = (Bounder){.arena = ls_arena_new(), .p = p, .o = o};
    c->b = ls_bound_graph_new(c->arena, p);
    c->least = plain_least(c->b);
}

/* The network for a budget; false when there is nothing to separate. */
static bool lay_net(Bounder *c, int64_t budget)
{
    uint32_t *sep = ls_arena_alloc(c->arena, c->b->npath + 1u, sizeof *sep);
    uint32_t n = choose_separators(c, budget, default_separators(c), sep);
    if (n == 0)
        return false;
    c->net = ls_bound_net_new(c->arena, c->b, sep, n);
    for (uint32_t k = 0; k < n; k++) {
        int64_t least = ls_bound_net_least(c->net, k);
        c->least = least > c->least ? least : c->least;
    }
    c->dual = ls_bound_dual_new(c->net);
    return true;
}

/* Base cost and proven recomputations, ns, rounded down; up where costs come in whole steps. */
static double cost_of(const Bounder *c, double grains)
{
    const LsBoundGraph *b = c->b;
    double more = grains > 0 ? grains * c->net->grain : 0;
    if (b->least_cost > 0)
        return b->base + ceil(more / b->least_cost) * b->least_cost;
    return (b->base + more) * (1 - 0x1p-52 * (c->p->n + 4.0));
}

static uint32_t dearest(const Bounder *c)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < c->net->nsep; k++)
        if (c->dual->price[k] > c->dual->price[best])
            best = k;
    return c->dual->price[best] > 0 ? c->b->path[c->net->sep[best]] : LS_NO_ID;
}

LsBound ls_bound(LsArena *arena, const LsProb *p, int64_t budget, const LsBoundOptions *o)
{
    (void)arena;
    Bounder c;
    open_bounder(&c, p, o);
    LsBound r = {.cost = cost_of(&c, 0), .least = c.least, .separator = LS_NO_ID};
    r.infeasible = budget > 0 && budget < c.least;
    if (budget > 0 && !r.infeasible && lay_net(&c, budget)) {
        r.least = c.least;
        r.infeasible = budget < c.least;
        double enough = o->enough > 0 ? (o->enough - c.b->base) / c.net->grain : INFINITY;
        double grains = ls_bound_dual_search(c.dual, budget, enough, default_cuts(&c));
        r.infeasible |= grains > (double)c.dual->most;
        r.cost = cost_of(&c, grains);
        r.separator = dearest(&c);
        r.nsep = c.net->nsep;
        r.ncut = c.dual->cuts;
    }
    ls_arena_free(c.arena);
    return r;
}
