/* scheduler/bound_base.c -- readers of a group that is not needed pay for it: as much as each gains
 * by reading it, together no more than it costs. */
#include "scheduler/bound_base.h"

#include <math.h>

typedef struct Base {
    const LsBoundGraph *b;
    LsRows pays;                /* by node: payments it makes, as places in `paid` */
    double *paid;               /* by payment */
    uint32_t *to;               /* by payment: a group that is not needed */
    double *left;               /* by group that is not needed: what may still be paid for it */
    bool *chosen;               /* by payment: rises now */
} Base;

static double value_of(const Base *x, uint32_t node)
{
    double value = x->b->p->dag->node[node].cost;
    for (uint32_t k = x->pays.at[node]; k < x->pays.at[node + 1]; k++)
        value += x->paid[x->pays.id[k]];
    return value;
}

static double least_value(const Base *x, uint32_t group)
{
    double least = INFINITY;
    for (uint32_t k = x->b->member.at[group]; k < x->b->member.at[group + 1]; k++)
        least = fmin(least, value_of(x, x->b->member.id[k]));
    return least;
}

/* A payment for each member of least value, the one of those it may make for which the most is
 * left; false: one of them has none. */
static bool choose(Base *x, uint32_t group, double level)
{
    for (uint32_t k = x->b->member.at[group]; k < x->b->member.at[group + 1]; k++) {
        uint32_t node = x->b->member.id[k], best = LS_NO_ID;
        bool has = value_of(x, node) > level;
        for (uint32_t j = x->pays.at[node]; j < x->pays.at[node + 1]; j++) {
            uint32_t pay = x->pays.id[j];
            has |= x->chosen[pay];
            if (x->left[x->to[pay]] > 0
                && (best == LS_NO_ID || x->left[x->to[pay]] > x->left[x->to[best]]))
                best = pay;
        }
        if (!has && best == LS_NO_ID)
            return false;
        if (!has)
            x->chosen[best] = true;
    }
    return true;
}

/* How much the chosen payments may rise: until nothing is left for one of them, or a member that
 * makes none has the least value, too. */
static double rise_of(const Base *x, uint32_t group, double least)
{
    double rise = INFINITY;
    for (uint32_t k = x->b->member.at[group]; k < x->b->member.at[group + 1]; k++) {
        uint32_t node = x->b->member.id[k];
        bool pays = false;
        for (uint32_t j = x->pays.at[node]; j < x->pays.at[node + 1]; j++)
            if (x->chosen[x->pays.id[j]]) {
                pays = true;
                rise = fmin(rise, x->left[x->to[x->pays.id[j]]]);
            }
        if (!pays)
            rise = fmin(rise, value_of(x, node) - least);
    }
    return rise;
}

/* Raises the least value of a group as far as its payments go. */
static void raise(Base *x, uint32_t group)
{
    enum { ROUNDS = 32 };
    const double close = 1 + 1e-12;
    const LsRows *of = &x->b->member;
    uint32_t first = LS_NO_ID, end = 0;         /* payments of the group */
    for (uint32_t k = of->at[group]; k < of->at[group + 1]; k++)
        for (uint32_t j = x->pays.at[of->id[k]]; j < x->pays.at[of->id[k] + 1]; j++) {
            first = x->pays.id[j] < first ? x->pays.id[j] : first;
            end = x->pays.id[j] >= end ? x->pays.id[j] + 1 : end;
        }
    for (uint32_t round = 0; first < end && round < ROUNDS; round++) {
        double least = least_value(x, group);
        for (uint32_t k = first; k < end; k++)
            x->chosen[k] = false;
        if (!choose(x, group, least * close))
            return;
        double rise = rise_of(x, group, least);
        for (uint32_t k = first; k < end; k++)
            if (x->chosen[k]) {
                x->paid[k] += rise;
                x->left[x->to[k]] -= rise;
            }
    }
}

/* The place of the group's payment to `to`, behind `first`, where the group's begin. */
static uint32_t payment(Base *x, uint32_t to, uint32_t first, uint32_t *n)
{
    uint32_t at = first;
    while (at < *n && x->to[at] != to)
        at++;
    x->to[at] = to;
    *n = at == *n ? at + 1 : *n;
    return at;
}

/* A payment of each group to each that is not needed and of which a member reads something. */
static void find_payments(Base *x, LsArena *tmp)
{
    const LsBoundGraph *b = x->b;
    const LsDag *g = b->p->dag;
    LsPairs of = {0};
    uint32_t n = 0, most = 0;
    for (uint32_t v = 0; v < g->nnode; v++)
        most += g->node[v].nin;
    x->to = ls_arena_alloc(tmp, most + 1u, sizeof *x->to);
    for (uint32_t v = 0; v < g->nnode; v++) {
        uint32_t first = n;
        for (uint32_t k = b->member.at[v]; k < b->member.at[v + 1]; k++) {
            const LsDagNode *node = &g->node[b->member.id[k]];
            uint32_t mine = of.n;
            for (uint32_t j = 0; j < node->nin; j++) {
                uint32_t m = b->maker[node->in[j]];
                if (m == LS_NO_ID || m == v || b->needed[m])
                    continue;
                uint32_t at = payment(x, m, first, &n);
                if (!ls_id_in(of.id + mine, of.n - mine, at))   /* once, whatever it reads of m */
                    ls_pairs_add(tmp, &of, b->member.id[k], at);
            }
        }
    }
    x->pays = ls_rows(tmp, &of, g->nnode);
    x->paid = ls_arena_alloc(tmp, n + 1u, sizeof *x->paid);
    x->chosen = ls_arena_alloc(tmp, n + 1u, sizeof *x->chosen);
}

double ls_bound_base(const LsBoundGraph *b)
{
    enum { PASSES = 3 };
    LsArena *tmp = ls_arena_new();
    Base x = {.b = b};
    double sum = 0;
    find_payments(&x, tmp);
    x.left = ls_arena_alloc(tmp, b->p->n + 1u, sizeof *x.left);
    for (uint32_t v = 0; v < b->p->n; v++)
        x.left[v] = b->cost[v];
    for (int pass = 0; pass < PASSES; pass++) {
        for (uint32_t v = 0; v < b->p->n; v++)
            if (b->needed[v])
                raise(&x, v);
        for (uint32_t v = b->p->n; v-- > 0;) {      /* what others want to pay more for */
            if (b->needed[v] || b->member.at[v] == b->member.at[v + 1] || x.left[v] > 0)
                continue;
            double had = least_value(&x, v);
            raise(&x, v);
            x.left[v] += least_value(&x, v) - had;
        }
    }
    for (uint32_t v = 0; v < b->p->n; v++)
        sum += b->needed[v] ? least_value(&x, v) : 0;
    ls_arena_free(tmp);
    return sum;
}
