/* scheduler/order/moves_alternative.c -- moves between a node and the alternatives with the same
 * results. */
#include "scheduler/order/moves_alternative.h"

enum { MOST_READERS = 8 }; /* most readers of a value that are swapped together */

/* Replaces the run by a run of node `to`. again: recomputes the operands that are not in memory. */
static bool swap_for(LsMoves *m, uint32_t run, uint32_t to, bool again)
{
    LsTape *t = m->t;
    const LsProb *p = m->p;
    uint32_t n = 0;
    int left = LS_MOVES_DEEP;
    for (uint32_t k = p->in.at[to]; again && k < p->in.at[to + 1]; k++) {
        uint32_t u = p->in.id[k];
        if (!ls_tape_has(t, u, run) && ls_moves_worth_again(m, u, p->out.id[p->out.at[to]])
            && !ls_moves_make_again(m, u, run, &left))
            return false;
    }
    ls_moves_put_off_updates(m, ls_tape_insert(t, to, run));
    ls_moves_push_makers(m, &n, run);
    ls_tape_remove(t, run);
    ls_moves_sweep(m, n);
    return true;
}

/* Returns the ordinary node that a run of `now` stands for. */
static uint32_t stands_for(const LsProb *p, uint32_t now)
{
    return p->out.at[now] < p->out.at[now + 1] ? p->maker[p->out.id[p->out.at[now]]] : now;
}

bool ls_move_swap(LsMoves *m)
{
    LsTape *t = m->t;
    const LsProb *p = m->p;
    uint32_t run = ls_moves_any_run(m, 0);
    if (run == LS_TAPE_END)
        return false;
    uint32_t now = t->run[run].node, v = stands_for(p, now);
    uint32_t nswap = p->swap.at[v + 1] - p->swap.at[v];
    uint32_t pick = nswap > 0 ? ls_moves_random(m, nswap + 1) : 0;
    uint32_t to = pick == nswap ? v : p->swap.id[p->swap.at[v] + pick];
    if (nswap == 0 || to == now || (p->stuck[to] && t->count[to] > 0))
        return false;
    return swap_for(m, run, to, ls_moves_random(m, 2));
}

/* Returns the cheapest node with the results of `now` that does not read x, or LS_NO_ID. */
static uint32_t cheapest_without(const LsMoves *m, uint32_t now, uint32_t x)
{
    enum { USUAL = 64 };
    const LsProb *p = m->p;
    uint32_t v = stands_for(p, now), best = LS_NO_ID;
    uint64_t looks = 0;
    for (uint32_t k = p->swap.at[v]; k <= p->swap.at[v + 1]; k++) {
        uint32_t to = k < p->swap.at[v + 1] ? p->swap.id[k] : v;
        looks += 1 + p->in.at[to + 1] - p->in.at[to];
        if (!ls_id_in(p->in.id + p->in.at[to], p->in.at[to + 1] - p->in.at[to], x)
            && !p->stuck[to] && (best == LS_NO_ID || p->cost[to] < p->cost[best]))
            best = to;
    }
    *m->t->work += looks > USUAL ? looks - USUAL : 0;
    return best;
}

/* Returns the added cost of replacing the run by a node that does not read x, with recomputation of
 * its other operands; negative if that is impossible or costs `most` or more. */
static double price_swap(LsMoves *m, uint32_t run, uint32_t x, double most)
{
    const LsProb *p = m->p;
    uint32_t now = m->t->run[run].node, to = cheapest_without(m, now, x);
    if (to == LS_NO_ID)
        return -1;
    double cost = p->cost[to] > p->cost[now] ? p->cost[to] - p->cost[now] : 0;
    for (uint32_t k = p->in.at[to]; k < p->in.at[to + 1] && cost < most; k++) {
        uint32_t u = p->in.id[k];
        if (p->maker[u] == LS_NO_ID || p->stuck[p->maker[u]] || ls_tape_has(m->t, u, run))
            continue;
        double again = ls_moves_price_again(m, u, run, most - cost);
        if (again < 0)
            return -1;
        cost += again;
    }
    return cost < most ? cost : -1;
}

double ls_moves_price_relief(LsMoves *m, uint32_t x, uint32_t next, double most, LsRelief *way)
{
    LsTape *t = m->t;
    const LsTapeList *l = &t->list[x];
    double best = ls_moves_price_again(m, x, next, most), swapped = 0;
    *way = (LsRelief){.next = next, .before = next};
    if (!m->swaps || next == LS_TAPE_END || t->guard[x])
        return best;
    uint32_t k = ls_tape_events_before(t, x, next);
    for (uint32_t n = 1; n <= MOST_READERS; n++, k++) {
        most = best >= 0 ? best : most;
        double more = price_swap(m, ls_tape_event_run(t, x, k), x, most - swapped);
        bool end = k + 1 == l->n, last = end || l->event[k + 1] % 2 == 1;
        if (more < 0 || (end && t->p->dag->tensor[x].output))
            return best;
        swapped += more;
        LsRelief mine = {next, n, last ? LS_MOVES_NOBODY : ls_tape_event_run(t, x, k + 1)};
        double again = last ? 0 : ls_moves_price_again(m, x, mine.before, most - swapped);
        if (again >= 0 && swapped + again < most) {
            best = swapped + again;
            *way = mine;
        }
        if (last)
            return best;
    }
    return best;
}

/* Replaces readers of x by the cheapest nodes that do not read it. again: recomputes their operands
 * that are not in memory. */
static bool do_without(LsMoves *m, uint32_t x, const uint32_t *reader, uint32_t n, bool again)
{
    uint32_t node[MOST_READERS];
    for (uint32_t k = 0; k < n; k++)
        node[k] = m->t->run[reader[k]].node;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t to = cheapest_without(m, node[k], x);
        bool there = m->t->run[reader[k]].node == node[k]; /* no swap has removed it */
        if (to == LS_NO_ID || (there && !swap_for(m, reader[k], to, again)))
            return false;
    }
    return true;
}

bool ls_moves_let_go(LsMoves *m, uint32_t x, const LsRelief *way)
{
    uint32_t reader[MOST_READERS], n = 0;
    int left = LS_MOVES_DEEP;
    for (uint32_t k = way->nswap ? ls_tape_events_before(m->t, x, way->next) : 0; n < way->nswap;)
        reader[n++] = ls_tape_event_run(m->t, x, k++);
    return do_without(m, x, reader, n, true)
           && (way->before == LS_MOVES_NOBODY || ls_moves_make_again(m, x, way->before, &left));
}

bool ls_move_forgo(LsMoves *m)
{
    LsTape *t = m->t;
    const LsProb *p = m->p;
    uint32_t run = ls_moves_any_run(m, 0), reader[MOST_READERS + 1];
    if (run == LS_TAPE_END)
        return false;
    uint32_t v = t->run[run].node, nout = p->out.at[v + 1] - p->out.at[v];
    uint32_t x = nout > 0 ? p->out.id[p->out.at[v] + ls_moves_random(m, nout)] : LS_NO_ID;
    uint32_t n = nout > 0 && !t->guard[x] ? ls_moves_readers(t, run, x, MOST_READERS, reader) : 0;
    bool again = ls_moves_random(m, 2);
    return n > 0 && n <= MOST_READERS && do_without(m, x, reader, n, again);
}

bool ls_moves_swap_cheaper(LsMoves *m, LsLimit *limit)
{
    LsTape *t = m->t;
    const LsProb *p = m->p;
    uint32_t next;
    for (uint32_t r = t->run[LS_TAPE_END].next; m->swaps && r != LS_TAPE_END; r = next) {
        if (ls_moves_worked_long(m) && ls_moves_out_of_time(m, limit))
            return true;
        uint32_t v = stands_for(p, t->run[r].node);
        next = t->run[r].next;
        for (uint32_t k = p->swap.at[v]; k < p->swap.at[v + 1]; k++) {
            uint32_t mark = t->nchange, to = p->swap.id[k];
            if (p->cost[to] >= p->cost[t->run[r].node] || p->stuck[to])
                continue;
            double cost = t->cost;
            if (swap_for(m, r, to, false) && t->bad == 0 && ls_tape_peak(t) <= m->target
                && t->cost < cost)
                break;
            ls_tape_undo(t, mark);
        }
    }
    return false;
}
