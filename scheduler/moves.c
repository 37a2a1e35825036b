/* scheduler/moves.c -- see the header. */
#include "scheduler/moves.h"

#include <string.h>

enum { DEEP = 60 };             /* runs that making one tensor again may take */

LsMoves *ls_moves_new(LsArena *arena, LsTape *t)
{
    LsProb *p = t->p;
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
    m->rnd ^= m->rnd >> 12;                         /* xorshift64* (Vigna 2016) */
    m->rnd ^= m->rnd << 25;
    m->rnd ^= m->rnd >> 27;
    uint64_t high = (m->rnd * UINT64_C(0x2545f4914f6cdd1d)) >> 32;
    return (uint32_t)(high * n >> 32);
}

/* A random run, by its place among the slots; LS_TAPE_END behind the last. */
static uint32_t any_run_from(LsMoves *m, uint32_t slot)
{
    return ls_tape_run_from(m->t, slot + ls_moves_random(m, m->t->tree.n - slot));
}

static void push(LsMoves *m, uint32_t *n, uint32_t run)
{
    m->stack = ls_arena_grow(m->t->arena, m->stack, *n, *n + 1u, sizeof *m->stack,
                             &m->stack_room);
    m->stack[(*n)++] = run;
}

static void push_makers(LsMoves *m, uint32_t *n, uint32_t run)
{
    const LsTape *t = m->t;
    uint32_t v = t->run[run].node;
    for (uint32_t k = m->p->in.at[v]; k < m->p->in.at[v + 1]; k++) {
        uint32_t w = ls_tape_maker(t, m->p->in.id[k], run);
        if (w != LS_TAPE_END)
            push(m, n, w);
    }
}

/* Removes the runs on the stack that are dead, and what dies with them. */
static void sweep(LsMoves *m, uint32_t n)
{
    while (n > 0) {
        uint32_t run = m->stack[--n];
        if (m->t->run[run].node == LS_NO_ID || !ls_tape_is_dead(m->t, run))
            continue;
        push_makers(m, &n, run);
        ls_tape_remove(m->t, run);
    }
}

/* Puts off the updates of what the run reads that come before it. */
static void put_off_updates(LsMoves *m, uint32_t run)
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

static uint32_t run_again(LsMoves *m, uint32_t node, uint32_t before)
{
    LsTape *t = m->t;
    uint32_t run = ls_tape_insert(t, node, before), n = 0;
    put_off_updates(m, run);
    for (uint32_t k = m->p->out.at[node]; k < m->p->out.at[node + 1]; k++) {
        uint32_t w = ls_tape_maker(t, m->p->out.id[k], run);
        if (w != LS_TAPE_END)
            push(m, &n, w);
    }
    sweep(m, n);
    return run;
}

/* Whether to make u again rather than hold it, for a node that makes x. */
static bool worth_again(LsMoves *m, uint32_t u, uint32_t x)
{
    if (m->p->stuck[m->p->maker[u]])
        return false;
    return m->p->size[u] > m->p->size[x] || ls_moves_random(m, 8) != 0;
}

/* Has x in memory before the run: anew, operands first; or, where that is not allowed, by holding
 * what there was. `left`: runs that may still be added. */
static bool make_again(LsMoves *m, uint32_t x, uint32_t before, int *left)
{
    const LsProb *p = m->p;
    uint32_t v = p->maker[x];
    if (p->stuck[v] || --*left < 0)
        return false;
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
        uint32_t u = p->in.id[k];
        if (ls_tape_has(m->t, u, before) || !worth_again(m, u, x))
            continue;
        if (!make_again(m, u, before, left))
            return false;
    }
    run_again(m, v, before);
    return true;
}

/* Cost of having x again before run `before`; negative if it cannot be or is `most` or more. */
static double price_again(LsMoves *m, uint32_t x, uint32_t before, double most)
{
    const LsProb *p = m->p;
    uint32_t node[DEEP], n = 0;
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
            if (n == DEEP)
                return -1;
            m->mark[w] = m->stamp;
            node[n++] = w;
        }
    }
    return cost;
}

/* A random tensor that is in memory at the run but not used by it: *x, and the next run that
 * wants it (LS_TAPE_END: the graph does). */
static bool find_idle(LsMoves *m, uint32_t run, uint32_t *x, uint32_t *next)
{
    const LsTape *t = m->t;
    uint32_t slot = t->run[run].slot, r = any_run_from(m, slot + 1 < t->tree.n ? slot + 1 : slot);
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
    return k > 0 && m->p->size[*x] > 0 && t->run[ls_tape_event_run(t, *x, k - 1)].slot < slot
           && (r != LS_TAPE_END || k == t->list[*x].n);
}

/* A random run above the target; the first with the peak where none is. */
static uint32_t high_run(LsMoves *m)
{
    const LsTape *t = m->t;
    if (ls_tape_peak(t) <= m->target)
        return ls_tape_peak_run(t);
    return t->at[ls_peak_tree_some(&t->tree, m->target, ls_moves_random(m, UINT32_MAX))];
}

bool ls_move_relieve(LsMoves *m, uint32_t tries)
{
    LsTape *t = m->t;
    uint32_t peak = high_run(m), best = LS_NO_ID, before = LS_TAPE_END;
    int64_t over = 2 * (ls_tape_peak(t) - m->target);
    double least = 1e300;
    for (uint32_t k = 0; k < tries; k++) {
        uint32_t x, next;
        if (!find_idle(m, peak, &x, &next))
            continue;
        int64_t bytes = over <= 0 || m->p->size[x] < over ? m->p->size[x] : over;
        double luck = 0.75 + ls_moves_random(m, 1024) / 2048.0;
        double cost = price_again(m, x, next, least * (double)bytes / luck);
        if (cost < 0)
            continue;
        least = luck * (cost + 1e-9) / (double)bytes;
        best = x;
        before = next;
    }
    int left = DEEP;
    return best != LS_NO_ID && make_again(m, best, before, &left);
}

bool ls_moves_can_drop(const LsMoves *m, uint32_t run)
{
    const LsTape *t = m->t;
    const LsProb *p = t->p;
    uint32_t v = t->run[run].node;
    if (p->dag->node[v].nupd > 0 || p->out.at[v] == p->out.at[v + 1])
        return false;
    for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++)
        if (ls_tape_maker(t, p->out.id[k], run) == LS_TAPE_END)     /* nothing would stay */
            return false;
    return true;
}

bool ls_move_drop(LsMoves *m, uint32_t run)
{
    uint32_t n = 0;
    if (!ls_moves_can_drop(m, run))
        return false;
    push_makers(m, &n, run);
    ls_tape_remove(m->t, run);
    sweep(m, n);
    return true;
}

uint32_t ls_moves_extra(LsMoves *m)
{
    for (int k = 0; k < 12; k++) {
        uint32_t run = any_run_from(m, 0);
        if (run != LS_TAPE_END && ls_moves_can_drop(m, run))
            return run;
    }
    return LS_TAPE_END;
}

/* ---- order ---- */

/* Narrows lo .. hi to what event k of tensor x allows: a read stays between the writes on both
 * sides, a write between the events. */
static void narrow(const LsTape *t, uint32_t x, uint32_t k, bool read, uint32_t *lo, uint32_t *hi)
{
    uint32_t a = k, b = k + 1, n = t->list[x].n;
    while (read && a > 0 && !ls_tape_event_writes(t, x, a - 1))
        a--;
    while (read && b < n && !ls_tape_event_writes(t, x, b))
        b++;
    if (a > 0 && t->run[ls_tape_event_run(t, x, a - 1)].slot + 1 > *lo)
        *lo = t->run[ls_tape_event_run(t, x, a - 1)].slot + 1;
    if (b < n && t->run[ls_tape_event_run(t, x, b)].slot < *hi)
        *hi = t->run[ls_tape_event_run(t, x, b)].slot;
}

/* Slots that the run must stay between, so that everybody goes on reading what they read now: the
 * first that is allowed, and the first behind. */
static void find_window(const LsTape *t, uint32_t run, uint32_t *lo, uint32_t *hi)
{
    const LsRows *rows[] = {&t->reads, &t->writes};
    uint32_t v = t->run[run].node;
    *lo = 0;
    *hi = t->tree.n;
    for (int w = 0; w < 2; w++)
        for (uint32_t k = rows[w]->at[v]; k < rows[w]->at[v + 1]; k++) {
            uint32_t x = rows[w]->id[k];
            narrow(t, x, ls_tape_events_before(t, x, run), w == 0, lo, hi);
        }
}

/* The run that makes, or the one that reads next, something idle at the peak. */
static uint32_t run_about_peak(LsMoves *m)
{
    uint32_t peak = high_run(m), x, next;
    switch (ls_moves_random(m, 4)) {
    case 0:
        return peak;
    case 1:
        return any_run_from(m, 0);
    default:
        for (int k = 0; k < 8; k++)
            if (find_idle(m, peak, &x, &next))
                return ls_moves_random(m, 2) && next != LS_TAPE_END
                           ? next : ls_tape_maker(m->t, x, peak);
        return LS_TAPE_END;
    }
}

/* The runs that read what the run wrote to x; how many, or MOST + 1. */
static uint32_t find_readers(const LsTape *t, uint32_t run, uint32_t x, uint32_t most,
                             uint32_t *reader)
{
    const LsTapeList *l = &t->list[x];
    uint32_t n = 0;
    for (uint32_t k = ls_tape_events_before(t, x, run) + 1;
         k < l->n && l->event[k] % 2 == 0 && n <= most; k++)
        reader[n++] = l->event[k] / 2;
    return n;
}

/* The run that alone reads what the run makes, if nobody reads what that makes: the update behind
 * a weight gradient. Neither could go far without the other. LS_TAPE_END: there is none. */
static uint32_t follower(const LsTape *t, uint32_t run)
{
    const LsProb *p = t->p;
    uint32_t only = LS_TAPE_END, reader[2], v = t->run[run].node;
    for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++) {
        uint32_t n = find_readers(t, run, p->out.id[k], 1, reader);
        if (n > 1 || (n == 1 && only != LS_TAPE_END && only != reader[0]))
            return LS_TAPE_END;
        only = n == 1 ? reader[0] : only;
    }
    uint32_t w = only != LS_TAPE_END ? t->run[only].node : v;
    for (uint32_t k = p->out.at[w]; only != LS_TAPE_END && k < p->out.at[w + 1]; k++)
        if (!t->guard[p->out.id[k]] && find_readers(t, only, p->out.id[k], 0, reader) > 0)
            return LS_TAPE_END;
    return only;
}

/* One of the slots from lo to hi: either end more often, or just beyond the peak. */
static uint32_t pick_slot(LsMoves *m, uint32_t run, uint32_t lo, uint32_t hi)
{
    const LsTape *t = m->t;
    uint32_t slot = lo + ls_moves_random(m, hi - lo), peak = t->run[ls_tape_peak_run(t)].slot;
    switch (ls_moves_random(m, 4)) {
    case 0:
        return lo;
    case 1:
        return hi;
    case 2:                                         /* just beyond the peak, seen from the run */
        if (peak >= lo && peak < hi)
            return t->run[run].slot < peak ? peak + 1 : peak;
        return slot;
    default:
        return slot;
    }
}

bool ls_move_shift(LsMoves *m)
{
    LsTape *t = m->t;
    uint32_t run = ls_moves_random(m, 2) ? run_about_peak(m) : any_run_from(m, 0), lo, hi, first;
    if (run == LS_TAPE_END)
        return false;
    uint32_t last = follower(t, run), node = t->run[run].node, with = LS_NO_ID;
    if (last != LS_TAPE_END && ls_moves_random(m, 4) != 0)
        last = LS_TAPE_END;
    find_window(t, run, &lo, &hi);
    if (last != LS_TAPE_END)
        find_window(t, last, &first, &hi);
    if (lo >= hi)
        return false;
    uint32_t before = ls_tape_run_from(t, pick_slot(m, run, lo, hi));
    if (before == run || before == last || before == t->run[run].next)
        return false;
    if (last != LS_TAPE_END) {
        with = t->run[last].node;
        ls_tape_remove(t, last);
    }
    ls_tape_remove(t, run);
    ls_tape_insert(t, node, before);
    if (with != LS_NO_ID)
        ls_tape_insert(t, with, before);
    return true;
}

/* Lets node `to` make what the run makes; where `again`, with its operands made anew if they are
 * not there. */
static bool swap_for(LsMoves *m, uint32_t run, uint32_t to, bool again)
{
    LsTape *t = m->t;
    const LsProb *p = m->p;
    uint32_t n = 0;
    int left = DEEP;
    for (uint32_t k = p->in.at[to]; again && k < p->in.at[to + 1]; k++) {
        uint32_t u = p->in.id[k];
        if (!ls_tape_has(t, u, run) && worth_again(m, u, p->out.id[p->out.at[to]])
            && !make_again(m, u, run, &left))
            return false;
    }
    put_off_updates(m, ls_tape_insert(t, to, run));
    push_makers(m, &n, run);
    ls_tape_remove(t, run);
    sweep(m, n);
    return true;
}

/* The node that a run of `now` stands for. */
static uint32_t stands_for(const LsProb *p, uint32_t now)
{
    return p->out.at[now] < p->out.at[now + 1] ? p->maker[p->out.id[p->out.at[now]]] : now;
}

bool ls_move_swap(LsMoves *m)
{
    LsTape *t = m->t;
    const LsProb *p = m->p;
    uint32_t run = any_run_from(m, 0);
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

/* The cheapest node that makes what `now` makes and does not read x, or LS_NO_ID. */
static uint32_t cheapest_without(const LsProb *p, uint32_t now, uint32_t x)
{
    uint32_t v = stands_for(p, now), best = LS_NO_ID;
    for (uint32_t k = p->swap.at[v]; k <= p->swap.at[v + 1]; k++) {
        uint32_t to = k < p->swap.at[v + 1] ? p->swap.id[k] : v;
        if (!ls_id_in(p->in.id + p->in.at[to], p->in.at[to + 1] - p->in.at[to], x)
            && !p->stuck[to] && (best == LS_NO_ID || p->cost[to] < p->cost[best]))
            best = to;
    }
    return best;
}

bool ls_move_forgo(LsMoves *m)
{
    enum { MOST = 8 };
    LsTape *t = m->t;
    const LsProb *p = m->p;
    uint32_t run = any_run_from(m, 0), reader[MOST + 1], node[MOST + 1];
    if (run == LS_TAPE_END)
        return false;
    uint32_t v = t->run[run].node, nout = p->out.at[v + 1] - p->out.at[v];
    uint32_t x = nout > 0 ? p->out.id[p->out.at[v] + ls_moves_random(m, nout)] : LS_NO_ID;
    uint32_t n = nout > 0 && !t->guard[x] ? find_readers(t, run, x, MOST, reader) : 0;
    bool again = ls_moves_random(m, 2);
    for (uint32_t k = 0; k < n && n <= MOST; k++)
        node[k] = t->run[reader[k]].node;
    for (uint32_t k = 0; k < n && n <= MOST; k++) {
        uint32_t to = cheapest_without(p, node[k], x);
        bool there = t->run[reader[k]].node == node[k];         /* no swap took it away */
        if (to == LS_NO_ID || (there && !swap_for(m, reader[k], to, again)))
            return false;
    }
    return n > 0 && n <= MOST;
}

void ls_moves_swap_cheaper(LsMoves *m)
{
    LsTape *t = m->t;
    const LsProb *p = m->p;
    uint32_t next;
    for (uint32_t r = t->run[LS_TAPE_END].next; m->swaps && r != LS_TAPE_END; r = next) {
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
}
