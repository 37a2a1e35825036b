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

/* ns beyond that which r takes at least by an alternative that reads neither t nor, unless it is
 * LS_NO_ID, `also`. One replacement may spare several operands, and each gets its part of the
 * price. */
static double avoid(const LsProb *p, const double *least, uint32_t r, uint32_t t, uint32_t also)
{
    double ns = INFINITY;
    for (uint32_t k = p->swap.at[r]; k < p->swap.at[r + 1]; k++) {
        const uint32_t alt = p->swap.id[k];
        if (!reads(p, alt, t) && (also == LS_NO_ID || !reads(p, alt, also)))
            ns = fmin(ns, fmax(0, p->cost[alt] - least[r]) / spared(p, r, alt));
    }
    return ns;
}

double ls_avoid_time(const LsProb *p, const double *least, uint32_t r, uint32_t t)
{
    return avoid(p, least, r, t, LS_NO_ID);
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

typedef struct Prices {
    const LsProb *p;
    const double *least;
    LsRows readers;             /* by tensor: places in p->in of the needed nodes that read it */
    const uint32_t *node;       /* by place in p->in: the node */
    double *rest;               /* by place: what a plan that does without the node, and without the
                                 * operand in it, pays for that beside what is counted for the
                                 * node */
} Prices;

/* What it takes at least that nothing reads the results of node i, nor what replaced their readers
 * the tensor `also`. */
static double without(const Prices *x, uint32_t i, uint32_t also)
{
    const LsProb *p = x->p;
    const LsDagNode *node = &p->dag->node[i];
    double ns = node->required || node->nupd > 0 || p->out.at[i] == p->out.at[i + 1] ? INFINITY : 0;
    for (uint32_t k = p->out.at[i]; k < p->out.at[i + 1]; k++) {    /* all of them must be spared */
        const uint32_t t = p->out.id[k];
        double sum = p->dag->tensor[t].output ? INFINITY : 0;
        for (uint32_t j = x->readers.at[t]; j < x->readers.at[t + 1]; j++) {
            const uint32_t place = x->readers.id[j];
            sum += fmin(avoid(p, x->least, x->node[place], t, also), x->rest[place]);
        }
        ns = fmax(ns, sum);
    }
    return ns;
}

static Prices open_prices(LsArena *tmp, const LsProb *p)
{
    const uint32_t n = p->in.at[p->n];
    uint32_t *node = ls_arena_alloc(tmp, n + 1u, sizeof *node);
    LsPairs pairs = {0};
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++) {
            node[k] = i;
            if (p->needed[i])
                ls_pairs_add(tmp, &pairs, p->in.id[k], k);
        }
    return (Prices){p, cheapest(tmp, p), ls_rows(tmp, &pairs, p->nt), node,
                    ls_arena_alloc(tmp, n + 1u, sizeof(double))};
}

/* A node that nobody needs reads nothing, but what replaced its readers may read its operands
 * instead. Each operand of such a node has a part of the price. */
double *ls_least_times(LsArena *arena, const LsProb *p, bool *runs)
{
    LsArena *tmp = ls_arena_new();
    const Prices x = open_prices(tmp, p);
    double *out = ls_arena_alloc(arena, p->n + 1u, sizeof *out);
    for (uint32_t i = p->n; i-- > 0;) {
        if (!p->needed[i])
            continue;
        const double ns = without(&x, i, LS_NO_ID);
        out[i] = fmin(x.least[i], ns);
        if (runs != NULL)
            runs[i] = isinf(ns);
        for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++)
            x.rest[k] = isinf(ns) ? INFINITY
                                  : (without(&x, i, p->in.id[k]) - out[i])
                                        / (p->in.at[i + 1] - p->in.at[i]);
    }
    ls_arena_free(tmp);
    return out;
}
