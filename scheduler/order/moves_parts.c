/* scheduler/order/moves_parts.c -- see the header. */
#include "scheduler/order/moves_parts.h"

#include <math.h>

LsMoves *ls_moves_new(LsArena *arena, LsTape *t)
{
    const LsProb *p = t->p;
    LsMoves *m = ls_arena_alloc(arena, 1, sizeof *m);
    uint32_t *wanted = ls_arena_alloc(arena, p->nt + 1u, sizeof *wanted), n = 0;
    for (uint32_t x = 0; x < p->nt; x++)
        if (p->dag->tensor[x].output && p->size[x] > 0 && p->maker[x] != LS_NO_ID)
            wanted[n++] = x;
    *m = (LsMoves){.t = t, .p = p, .rnd = UINT64_C(0x9e3779b97f4a7c15), .wanted = wanted,
                   .nwanted = n, .swaps = p->swap.at[p->n] > 0};
    m->mark = ls_arena_alloc(arena, p->n + 1u, sizeof *m->mark);
    return m;
}

uint32_t ls_moves_random(LsMoves *m, uint32_t n)
{
    enum { WORK = 21 };                             /* as edited_order_parts.h counts, with the use
                                                     * of the number */
    *m->t->work += WORK;
    m->rnd ^= m->rnd >> 12;                         /* xorshift64* (Vigna 2016) */
    m->rnd ^= m->rnd << 25;
    m->rnd ^= m->rnd >> 27;
    uint64_t high = (m->rnd * UINT64_C(0x2545f4914f6cdd1d)) >> 32;
    return (uint32_t)(high * n >> 32);
}

double ls_moves_rise(LsMoves *m, double heat)
{
    return -heat * log((ls_moves_random(m, 1u << 30) + 1.0) / (1u << 30));
}

double ls_moves_energy(const LsMoves *m, double weight)
{
    int64_t over = ls_tape_peak(m->t) - m->target;
    if (over <= 0)
        return m->t->cost;
    return m->t->cost
           + weight * ((double)over + (double)ls_peak_tree_over(&m->t->tree, m->target) / 8);
}

bool ls_moves_out_of_time(LsMoves *m, LsLimit *limit)
{
    limit->work += *m->t->work;
    *m->t->work = 0;
    return ls_limit_is_over(limit);
}

bool ls_moves_worked_long(const LsMoves *m)
{
    enum { LONG = 50000000 };
    return *m->t->work >= LONG;
}

uint32_t ls_moves_any_run(LsMoves *m, uint32_t slot)
{
    return ls_tape_run_from(m->t, slot + ls_moves_random(m, m->t->tree.n - slot));
}

static void push(LsMoves *m, uint32_t *n, uint32_t run)
{
    m->stack = ls_arena_grow(m->t->arena, m->stack, *n, *n + 1u, sizeof *m->stack,
                             &m->stack_room);
    m->stack[(*n)++] = run;
}

void ls_moves_push_makers(LsMoves *m, uint32_t *n, uint32_t run)
{
    const LsTape *t = m->t;
    uint32_t v = t->run[run].node;
    for (uint32_t k = m->p->in.at[v]; k < m->p->in.at[v + 1]; k++) {
        uint32_t w = ls_tape_maker(t, m->p->in.id[k], run);
        if (w != LS_TAPE_END)
            push(m, n, w);
    }
}

void ls_moves_sweep(LsMoves *m, uint32_t n)
{
    while (n > 0) {
        uint32_t run = m->stack[--n];
        if (m->t->run[run].node == LS_NO_ID || !ls_tape_is_dead(m->t, run))
            continue;
        ls_moves_push_makers(m, &n, run);
        ls_tape_remove(m->t, run);
    }
}

void ls_moves_put_off_updates(LsMoves *m, uint32_t run)
{
    LsTape *t = m->t;
    uint32_t v = t->run[run].node;
    for (uint32_t k = t->reads.at[v]; k < t->reads.at[v + 1]; k++) {
        uint32_t x = t->reads.id[k];
        if (!t->guard[x])
            continue;
        uint32_t update = ls_tape_maker(t, x, run);
        if (update == LS_TAPE_END)
            continue;
        uint32_t node = t->run[update].node;
        ls_tape_remove(t, update);
        ls_tape_insert(t, node, t->run[run].next);
    }
}

uint32_t ls_moves_run_again(LsMoves *m, uint32_t node, uint32_t before)
{
    LsTape *t = m->t;
    uint32_t run = ls_tape_insert(t, node, before), n = 0;
    ls_moves_put_off_updates(m, run);
    for (uint32_t k = m->p->out.at[node]; k < m->p->out.at[node + 1]; k++) {
        uint32_t w = ls_tape_maker(t, m->p->out.id[k], run);
        if (w != LS_TAPE_END)
            push(m, &n, w);
    }
    ls_moves_sweep(m, n);
    return run;
}

bool ls_moves_worth_again(LsMoves *m, uint32_t u, uint32_t x)
{
    if (m->p->stuck[m->p->maker[u]])
        return false;
    return m->p->size[u] > m->p->size[x] || ls_moves_random(m, 8) != 0;
}

bool ls_moves_make_again(LsMoves *m, uint32_t x, uint32_t before, int *left)
{
    const LsProb *p = m->p;
    uint32_t v = p->maker[x];
    if (p->stuck[v] || --*left < 0)
        return false;
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
        uint32_t u = p->in.id[k];
        if (ls_tape_has(m->t, u, before) || !ls_moves_worth_again(m, u, x))
            continue;
        if (!ls_moves_make_again(m, u, before, left))
            return false;
    }
    ls_moves_run_again(m, v, before);
    return true;
}

double ls_moves_price_again(LsMoves *m, uint32_t x, uint32_t before, double most)
{
    const LsProb *p = m->p;
    uint32_t node[LS_MOVES_DEEP], n = 0;
    double cost = 0;
    m->stamp++;
    node[n++] = p->maker[x];
    m->mark[node[0]] = m->stamp;
    for (uint32_t k = 0; k < n; k++) {
        cost += p->cost[node[k]];
        if (p->stuck[node[k]] || cost >= most)
            return -1;
        for (uint32_t j = p->in.at[node[k]]; j < p->in.at[node[k] + 1]; j++) {
            uint32_t u = p->in.id[j], w = p->maker[u];
            if (m->mark[w] == m->stamp || p->stuck[w] || ls_tape_has(m->t, u, before))
                continue;
            if (n == LS_MOVES_DEEP)
                return -1;
            m->mark[w] = m->stamp;
            node[n++] = w;
        }
    }
    return cost;
}

bool ls_moves_find_idle(LsMoves *m, uint32_t run, uint32_t *x, uint32_t *next)
{
    const LsTape *t = m->t;
    uint32_t slot = t->slot[run];
    uint32_t r = ls_moves_any_run(m, slot + 1 < t->tree.n ? slot + 1 : slot);
    if (r == LS_TAPE_END || ls_moves_random(m, 16) == 0) {
        if (m->nwanted == 0)
            return false;
        *x = m->wanted[ls_moves_random(m, m->nwanted)];
        r = LS_TAPE_END;
    } else {
        uint32_t v = t->run[r].node, nin = m->p->in.at[v + 1] - m->p->in.at[v];
        if (nin == 0)
            return false;
        *x = m->p->in.id[m->p->in.at[v] + ls_moves_random(m, nin)];
    }
    uint32_t k = ls_tape_events_before(t, *x, r);
    *next = r;
    return k > 0 && m->p->size[*x] > 0 && t->slot[ls_tape_event_run(t, *x, k - 1)] < slot
           && (r != LS_TAPE_END || k == t->list[*x].n);
}

uint32_t ls_moves_high_run(LsMoves *m)
{
    const LsTape *t = m->t;
    if (ls_tape_peak(t) <= m->target)
        return ls_tape_peak_run(t);
    return t->at[ls_peak_tree_some(&t->tree, m->target, ls_moves_random(m, UINT32_MAX))];
}

uint32_t ls_moves_readers(const LsTape *t, uint32_t run, uint32_t x, uint32_t most,
                          uint32_t *reader)
{
    const LsTapeList *l = &t->list[x];
    uint32_t n = 0;
    for (uint32_t k = ls_tape_events_before(t, x, run) + 1;
         k < l->n && l->event[k] % 2 == 0 && n <= most; k++)
        reader[n++] = l->event[k] / 2;
    return n;
}
