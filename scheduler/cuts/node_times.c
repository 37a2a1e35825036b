/* scheduler/cuts/node_times.c -- see the header. */
#include "scheduler/cuts/node_times.h"

#include <math.h>

static bool reads(const LsProb *p, uint32_t node, uint32_t t)
{
    return ls_id_in(p->in.id + p->in.at[node], p->in.at[node + 1] - p->in.at[node], t);
}

/* Operands of r that the alternative does without. */
static uint32_t spared(const LsProb *p, uint32_t r, uint32_t alternative)
{
    uint32_t n = 0;
    for (uint32_t k = p->in.at[r]; k < p->in.at[r + 1]; k++)
        n += !reads(p, alternative, p->in.id[k]);
    return n;
}

/* One replacement may spare several operands, and each gets its part of the price. */
double ls_avoid_time(const LsProb *p, const double *least, uint32_t r, uint32_t t)
{
    double ns = INFINITY;
    for (uint32_t k = p->swap.at[r]; k < p->swap.at[r + 1]; k++) {
        const uint32_t alt = p->swap.id[k];
        if (!reads(p, alt, t))
            ns = fmin(ns, fmax(0, p->cost[alt] - least[r]) / spared(p, r, alt));
    }
    return ns;
}

static double *cheapest(LsArena *arena, const LsProb *p)
{
    double *ns = ls_arena_alloc(arena, p->n + 1u, sizeof *ns);
    for (uint32_t i = 0; i < p->n; i++) {
        ns[i] = p->needed[i] ? p->cost[i] : 0;
        for (uint32_t k = p->swap.at[i]; p->needed[i] && k < p->swap.at[i + 1]; k++)
            ns[i] = fmin(ns[i], p->cost[p->swap.id[k]]);
    }
    return ns;
}

/* What it takes at least that nobody reads the results of node i, by the prices of its readers. */
static double without(const LsProb *p, const double *avoid, uint32_t i)
{
    const LsDagNode *node = &p->dag->node[i];
    double ns = node->required || node->nupd > 0 || p->out.at[i] == p->out.at[i + 1] ? INFINITY : 0;
    for (uint32_t k = p->out.at[i]; k < p->out.at[i + 1]; k++)      /* all of them must be spared */
        ns = fmax(ns, p->dag->tensor[p->out.id[k]].output ? INFINITY : avoid[p->out.id[k]]);
    return ns;
}

/* A reader that nobody needs any more reads nothing; those that were replaced have paid for it, so it is free. */
double *ls_least_times(LsArena *arena, const LsProb *p, bool *runs)
{
    LsArena *tmp = ls_arena_new();
    const double *least = cheapest(tmp, p);
    double *out = ls_arena_alloc(arena, p->n + 1u, sizeof *out);
    double *avoid = ls_arena_alloc(tmp, p->nt + 1u, sizeof *avoid);
    for (uint32_t i = p->n; i-- > 0;) {
        if (!p->needed[i])
            continue;
        const double ns = without(p, avoid, i);
        out[i] = fmin(least[i], ns);
        if (runs != NULL)
            runs[i] = isinf(ns);
        for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++)
            avoid[p->in.id[k]] += isinf(ns) ? ls_avoid_time(p, least, i, p->in.id[k]) : 0;
    }
    ls_arena_free(tmp);
    return out;
}
