/* scheduler/relaxation/second_run_cost.c -- see the header. */
#include "scheduler/relaxation/second_run_cost.h"

#include <math.h>

typedef struct Twice {
    const LsBoundGraph *b;
    const uint32_t *sep;
    uint32_t nsep;
    LsRows payments; /* by group that is not needed: the payments to it */
    double *room;    /* by node: its value above the least of its group, less the charges already
                      * made to other members */
    bool *sure;      /* by tensor: all members of some group read it */
} Twice;

/* Returns whether every schedule runs the group, and only after separator k. */
static bool is_behind(const Twice *x, uint32_t group, uint32_t k)
{
    return x->b->needed[group] && ls_bound_is_behind(x->b, group, x->sep[k]);
}

/* Returns whether every schedule has run the group before separator k. */
static bool is_before(const Twice *x, uint32_t group, uint32_t k)
{
    return x->b->needed[group] && ls_bound_has_run(x->b, group, x->sep[k]);
}

static bool makes(const Twice *x, uint32_t group, uint32_t tensor)
{
    return x->b->maker[tensor] == group && !x->b->p->dag->tensor[tensor].persistent;
}

/* Returns whether *t is the only result of `maker` that members of the group read; *t = LS_NO_ID is
 * set to the first. */
static bool reads_only(const Twice *x, uint32_t group, uint32_t maker, uint32_t *t)
{
    const LsBoundGraph *b = x->b;
    for (uint32_t k = b->member.at[group]; k < b->member.at[group + 1]; k++) {
        const LsDagNode *node = &b->p->dag->node[b->member.id[k]];
        for (uint32_t j = 0; j < node->nin; j++) {
            if (!makes(x, maker, node->in[j]))
                continue;
            if (*t != LS_NO_ID && *t != node->in[j])
                return false;
            *t = node->in[j];
        }
    }
    return true;
}

static bool pays(const LsBoundGraph *b, uint32_t node, uint32_t payment)
{
    const LsRows *of = &b->pay->of;
    return ls_id_in(of->id + of->at[node], of->at[node + 1] - of->at[node], payment);
}

/* Returns how much more than the least the members without this payment cost. */
static double room_of(const Twice *x, uint32_t payment)
{
    const LsBoundGraph *b = x->b;
    uint32_t group = b->pay->from[payment];
    double room = INFINITY;
    for (uint32_t k = b->member.at[group]; k < b->member.at[group + 1]; k++)
        if (!pays(b, b->member.id[k], payment))
            room = fmin(room, x->room[b->member.id[k]]);
    return room;
}

/* Returns how much more the readers behind separator k may pay to group u. */
static double gain_at(const Twice *x, uint32_t u, uint32_t k)
{
    const LsBoundPay *pay = x->b->pay;
    double cap = x->b->cost[u], gain = 0, shared = 0;
    for (uint32_t j = x->payments.at[u]; j < x->payments.at[u + 1]; j++) {
        uint32_t i = x->payments.id[j], group = pay->from[i];
        bool before = is_before(x, group, k);
        shared += before ? pay->paid[i] : 0;
        cap -= before ? 0 : pay->paid[i];
        if (is_behind(x, group, k))
            gain += fmin(room_of(x, i), x->b->cost[u]);
    }
    return shared > 0 ? fmin(gain, cap) : 0;
}

/* Returns whether the readers of u lie on the same sides of separators j and k. */
static bool is_alike(const Twice *x, uint32_t u, uint32_t j, uint32_t k)
{
    for (uint32_t i = x->payments.at[u]; i < x->payments.at[u + 1]; i++) {
        uint32_t group = x->b->pay->from[x->payments.id[i]];
        if (is_before(x, group, j) != is_before(x, group, k)
            || is_behind(x, group, j) != is_behind(x, group, k))
            return false;
    }
    return true;
}

/* Charges the readers behind separator k and reduces the room of their other members. */
static double charge(Twice *x, uint32_t u, uint32_t k, uint32_t *tensor)
{
    const LsBoundGraph *b = x->b;
    double left = gain_at(x, u, k), sum = 0;
    *tensor = LS_NO_ID;
    for (uint32_t j = x->payments.at[u]; j < x->payments.at[u + 1]; j++) {
        uint32_t i = x->payments.id[j], group = b->pay->from[i];
        if (is_behind(x, group, k) && !reads_only(x, group, u, tensor))
            return 0;
    }
    if (*tensor == LS_NO_ID || x->sure[*tensor])
        return 0;
    for (uint32_t j = x->payments.at[u]; j < x->payments.at[u + 1]; j++) {
        uint32_t i = x->payments.id[j], group = b->pay->from[i];
        if (!is_behind(x, group, k))
            continue;
        double mine = fmin(room_of(x, i), left);
        left -= mine;
        sum += mine;
        for (uint32_t m = b->member.at[group]; m < b->member.at[group + 1]; m++)
            x->room[b->member.id[m]] -= pays(b, b->member.id[m], i) ? 0 : mine;
    }
    return sum;
}

static Twice begin(LsArena *arena, const LsBoundGraph *b, const uint32_t *sep, uint32_t nsep)
{
    Twice x = {.b = b, .sep = sep, .nsep = nsep};
    x.payments = ls_rows_by(arena, b->pay->to, b->pay->n, b->p->n);
    x.room = ls_arena_alloc(arena, b->p->n + 1u, sizeof *x.room);
    x.sure = ls_arena_alloc(arena, b->p->nt + b->nform + 1u, sizeof *x.sure);
    for (uint32_t v = 0; v < b->p->n; v++)
        for (uint32_t k = b->member.at[v]; k < b->member.at[v + 1]; k++)
            x.room[b->member.id[k]] =
                ls_bound_value(b, b->member.id[k]) - ls_bound_least_value(b, v);
    for (uint32_t k = 0; k < b->in.at[b->p->n]; k++)
        x.sure[b->in.id[k]] = true;
    return x;
}

uint32_t ls_bound_twice(LsArena *arena, const LsBoundGraph *b, const uint32_t *sep, uint32_t nsep,
                        LsBoundTwice **list)
{
    if (b->pay == NULL || b->pay->n == 0)
        return 0;
    Twice x = begin(arena, b, sep, nsep);
    uint32_t n = 0;
    *list = ls_arena_alloc(arena, b->p->n + 1u, sizeof **list);
    for (uint32_t u = 0; u < b->p->n; u++) {
        uint32_t best = 0, tensor;
        double most = 0;
        for (uint32_t k = 0; x.payments.at[u] < x.payments.at[u + 1] && k < nsep; k++) {
            double gain = gain_at(&x, u, k);
            if (gain > most) {
                most = gain;
                best = k;
            }
        }
        double cost = most > 0 ? charge(&x, u, best, &tensor) : 0;
        if (cost <= 0)
            continue;
        uint32_t from = best, to = best;
        while (from > 0 && is_alike(&x, u, from - 1, best))
            from--;
        while (to + 1 < nsep && is_alike(&x, u, to + 1, best))
            to++;
        (*list)[n++] = (LsBoundTwice){tensor, from, to, cost};
    }
    return n;
}
