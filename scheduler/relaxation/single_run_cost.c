/* scheduler/relaxation/single_run_cost.c -- see the header. */
#include "scheduler/relaxation/single_run_cost.h"

#include <math.h>

typedef struct Base {
    const LsBoundGraph *b;
    LsBoundPay *pay;
    double *left; /* by group that is not needed: cost not yet paid for */
    bool *chosen; /* by payment: it rises now */
} Base;

double ls_bound_value(const LsBoundGraph *b, uint32_t node)
{
    double value = b->p->dag->node[node].cost;
    for (uint32_t k = b->pay->of.at[node]; k < b->pay->of.at[node + 1]; k++)
        value += b->pay->paid[b->pay->of.id[k]];
    return value;
}

double ls_bound_least_value(const LsBoundGraph *b, uint32_t group)
{
    double least = INFINITY;
    for (uint32_t k = b->member.at[group]; k < b->member.at[group + 1]; k++)
        least = fmin(least, ls_bound_value(b, b->member.id[k]));
    return least;
}

/* Chooses for each member of least value the payment with the most left. Returns false if a member
 * has no payment left. */
static bool choose(Base *x, uint32_t group, double level)
{
    for (uint32_t k = x->b->member.at[group]; k < x->b->member.at[group + 1]; k++) {
        uint32_t node = x->b->member.id[k], best = LS_NO_ID;
        bool has = ls_bound_value(x->b, node) > level;
        for (uint32_t j = x->pay->of.at[node]; j < x->pay->of.at[node + 1]; j++) {
            uint32_t pay = x->pay->of.id[j];
            has |= x->chosen[pay];
            if (x->left[x->pay->to[pay]] > 0
                && (best == LS_NO_ID || x->left[x->pay->to[pay]] > x->left[x->pay->to[best]]))
                best = pay;
        }
        if (!has && best == LS_NO_ID)
            return false;
        if (!has)
            x->chosen[best] = true;
    }
    return true;
}

/* Returns how much the chosen payments may rise: until one has nothing left, or a member without a
 * chosen payment has the least value too. */
static double rise_of(const Base *x, uint32_t group, double least)
{
    double rise = INFINITY;
    for (uint32_t k = x->b->member.at[group]; k < x->b->member.at[group + 1]; k++) {
        uint32_t node = x->b->member.id[k];
        bool pays = false;
        for (uint32_t j = x->pay->of.at[node]; j < x->pay->of.at[node + 1]; j++)
            if (x->chosen[x->pay->of.id[j]]) {
                pays = true;
                rise = fmin(rise, x->left[x->pay->to[x->pay->of.id[j]]]);
            }
        if (!pays)
            rise = fmin(rise, ls_bound_value(x->b, node) - least);
    }
    return rise;
}

/* Raises the least value of a group as far as its payments allow. */
static void raise(Base *x, uint32_t group)
{
    enum { ROUNDS = 32 };
    const double close = 1 + 1e-12;
    const LsRows *of = &x->b->member;
    uint32_t first = LS_NO_ID, end = 0; /* payments of the group */
    for (uint32_t k = of->at[group]; k < of->at[group + 1]; k++)
        for (uint32_t j = x->pay->of.at[of->id[k]]; j < x->pay->of.at[of->id[k] + 1]; j++) {
            first = x->pay->of.id[j] < first ? x->pay->of.id[j] : first;
            end = x->pay->of.id[j] >= end ? x->pay->of.id[j] + 1 : end;
        }
    for (uint32_t round = 0; first < end && round < ROUNDS; round++) {
        double least = ls_bound_least_value(x->b, group);
        for (uint32_t k = first; k < end; k++)
            x->chosen[k] = false;
        if (!choose(x, group, least * close))
            return;
        double rise = rise_of(x, group, least);
        for (uint32_t k = first; k < end; k++)
            if (x->chosen[k]) {
                x->pay->paid[k] += rise;
                x->left[x->pay->to[k]] -= rise;
            }
    }
}

/* Returns the payment of group `from` to `to`, and adds it if missing. first: the first payment of
 * the group. */
static uint32_t payment(LsBoundPay *pay, uint32_t from, uint32_t to, uint32_t first)
{
    uint32_t at = first;
    while (at < pay->n && pay->to[at] != to)
        at++;
    pay->from[at] = from;
    pay->to[at] = to;
    pay->n += at == pay->n;
    return at;
}

static LsBoundPay *find_payments(const LsBoundGraph *b)
{
    const LsDag *g = b->p->dag;
    LsBoundPay *pay = ls_arena_alloc(b->arena, 1, sizeof *pay);
    LsArena *tmp = ls_arena_new();
    LsPairs of = {0};
    uint32_t most = 1;
    for (uint32_t v = 0; v < g->nnode; v++)
        most += g->node[v].nin;
    pay->from = ls_arena_alloc(b->arena, most, sizeof *pay->from);
    pay->to = ls_arena_alloc(b->arena, most, sizeof *pay->to);
    for (uint32_t v = 0; v < g->nnode; v++) {
        uint32_t first = pay->n;
        for (uint32_t k = b->member.at[v]; k < b->member.at[v + 1]; k++) {
            const LsDagNode *node = &g->node[b->member.id[k]];
            for (uint32_t j = 0; j < node->nin; j++) {
                uint32_t m = b->maker[node->in[j]];
                if (m == LS_NO_ID || m == v || b->needed[m])
                    continue;
                /* once, however many results of m it reads */
                ls_pairs_add_once(tmp, &of, b->member.id[k], payment(pay, v, m, first));
            }
        }
    }
    pay->of = ls_rows(b->arena, &of, g->nnode);
    pay->paid = ls_arena_alloc(b->arena, pay->n + 1u, sizeof *pay->paid);
    ls_arena_free(tmp);
    return pay;
}

double ls_bound_base(LsBoundGraph *b)
{
    enum { PASSES = 3 };
    LsArena *tmp = ls_arena_new();
    b->pay = find_payments(b);
    Base x = {.b = b, .pay = b->pay};
    double sum = 0;
    x.chosen = ls_arena_alloc(tmp, b->pay->n + 1u, sizeof *x.chosen);
    x.left = ls_arena_alloc(tmp, b->p->n + 1u, sizeof *x.left);
    for (uint32_t v = 0; v < b->p->n; v++)
        x.left[v] = b->cost[v];
    for (int pass = 0; pass < PASSES; pass++) {
        for (uint32_t v = 0; v < b->p->n; v++)
            if (b->needed[v])
                raise(&x, v);
        for (uint32_t v = b->p->n; v-- > 0;) { /* groups that others may pay more for */
            if (b->needed[v] || b->member.at[v] == b->member.at[v + 1] || x.left[v] > 0)
                continue;
            double had = ls_bound_least_value(b, v);
            raise(&x, v);
            x.left[v] += ls_bound_least_value(b, v) - had;
        }
    }
    for (uint32_t v = 0; v < b->p->n; v++)
        sum += b->needed[v] ? ls_bound_least_value(b, v) : 0;
    ls_arena_free(tmp);
    return sum;
}
