/* scheduler/strategies/recompute_gradients.c -- runs backward nodes twice, or reads other values,
 * instead of keeping their results.
 *
 * If something waits for all gradients, such as a clipping by their norm, every gradient is read
 * twice: for the norm, and much later by its update. Keeping the gradient costs its bytes; making
 * it again costs its node's time, and the bytes of the operands as long as nothing else keeps them.
 * Gradients of large weights have small operands. Searches that recompute forward values hardly
 * come here: a second run pays only if the operands stay. Where the last reader of a result has an
 * alternative that reads other values, as the sum of clipped gradients has, that may be cheaper. */
#include "scheduler/order/edited_order.h"
#include "scheduler/strategies/published_strategies.h"

enum { LEVELS = 3 };            /* how deep the operands of an alternative may be missing */

typedef struct Twice {
    uint32_t tensor, next;      /* the result, and its next read */
    uint32_t instead, of;       /* node that runs in place of run `of`, so that `next` is not
                                 * needed; LS_NO_ID: the tensor is made again before `next` */
    double price;               /* of a byte saved at the peak */
} Twice;

/* Bytes that operand x of a second run adds at the peak: its instance is live there already, or was
 * made before, or is missing: then INT64_MAX. */
static int64_t held(const LsTape *t, uint32_t x, uint32_t peak, uint32_t next)
{
    if (ls_tape_has(t, x, peak))
        return 0;
    const uint32_t made = ls_tape_maker(t, x, next);
    if (made == LS_TAPE_END)
        return INT64_MAX;
    return t->slot[made] < t->slot[peak] ? t->p->size[x] : 0;
}

/* The cost per byte of making x again before its next read; negative: it saves nothing. */
static double price(const LsTape *t, uint32_t x, uint32_t peak, uint32_t next)
{
    const LsProb *p = t->p;
    const uint32_t v = p->maker[x];
    int64_t saved = p->size[x];
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
        const int64_t more = held(t, p->in.id[k], peak, next);
        if (more >= saved)
            return -1;
        saved -= more;
    }
    return p->cost[v] / (double)saved;
}

/* Bytes that node v needs beside what is live at the peak, INT64_MAX: an operand is missing. An
 * operand that was never made is made before v, and its operands, `levels` deep: *cost grows by
 * that. */
static int64_t needs(const LsTape *t, uint32_t v, uint32_t peak, uint32_t next, int levels,
                     double *cost)
{
    const LsProb *p = t->p;
    int64_t bytes = 0;
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
        int64_t more = held(t, p->in.id[k], peak, next);
        const uint32_t maker = p->maker[p->in.id[k]];
        if (more == INT64_MAX && levels > 0 && maker != LS_NO_ID && !p->stuck[maker]) {
            *cost += p->cost[maker];
            more = needs(t, maker, peak, next, levels - 1, cost);
        }
        if (more == INT64_MAX)
            return more;
        bytes += more;
    }
    return bytes;
}

/* Whether the read of x by run `next` is the last one of its instance. */
static bool is_last(const LsTape *t, uint32_t x, uint32_t next)
{
    const uint32_t k = ls_tape_events_before(t, x, next) + 1;
    return k < t->list[x].n ? ls_tape_event_writes(t, x, k) : !t->p->dag->tensor[x].output;
}

/* The run whose alternatives do without x: its last reader, or the only reader of that one's
 * result. */
static uint32_t end_of(const LsTape *t, uint32_t x, uint32_t next)
{
    const LsProb *p = t->p;
    const uint32_t v = t->run[next].node;
    if (!is_last(t, x, next) || ls_tape_must_stay(t, next))
        return LS_TAPE_END;
    if (p->swap.at[v] < p->swap.at[v + 1] || p->out.at[v] + 1 != p->out.at[v + 1])
        return next;
    const uint32_t y = p->out.id[p->out.at[v]], k = ls_tape_events_before(t, y, next) + 1;
    if (k >= t->list[y].n || ls_tape_event_writes(t, y, k)
        || !is_last(t, y, ls_tape_event_run(t, y, k)))
        return next;
    return ls_tape_event_run(t, y, k);
}

static bool reads(const LsProb *p, uint32_t v, uint32_t x)
{
    return ls_id_in(p->in.id + p->in.at[v], p->in.at[v + 1] - p->in.at[v], x);
}

/* The cheapest alternative of such a run: sets `instead` and `of`. Negative: there is none. */
static double price_instead(const LsTape *t, uint32_t peak, Twice *way)
{
    const LsProb *p = t->p;
    const uint32_t x = way->tensor, next = way->next, of = end_of(t, x, next);
    if (of == LS_TAPE_END)
        return -1;
    const uint32_t now = t->run[of].node,
                   between = of != next ? p->out.id[p->out.at[t->run[next].node]] : x;
    double best = -1;
    for (uint32_t k = p->swap.at[now]; k < p->swap.at[now + 1]; k++) {
        const uint32_t to = p->swap.id[k];
        double cost = p->cost[to] - p->cost[now] - (of != next ? p->cost[t->run[next].node] : 0);
        if (p->stuck[to] || reads(p, to, x) || reads(p, to, between))
            continue;
        const int64_t more = needs(t, to, peak, of, LEVELS, &cost);
        const double is =
            more < p->size[x] ? (cost > 0 ? cost : 0) / (double)(p->size[x] - more) : -1;
        if (is >= 0 && (best < 0 || is < best)) {
            best = is;
            way->instead = to;
            way->of = of;
        }
    }
    return best;
}

/* Inserts a run of v in front of run `before`, and the runs that its operands need. */
static void provide(LsTape *t, uint32_t v, uint32_t before, int levels)
{
    const LsProb *p = t->p;
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
        const uint32_t maker = p->maker[p->in.id[k]];
        if (levels > 0 && maker != LS_NO_ID && ls_tape_maker(t, p->in.id[k], before) == LS_TAPE_END)
            provide(t, maker, before, levels - 1);
    }
    ls_tape_insert(t, v, before);
}

/* Removes a run, and the runs before it whose results nothing reads any more. */
static void remove_with_makers(LsTape *t, uint32_t run)
{
    const LsProb *p = t->p;
    const uint32_t v = t->run[run].node, n = p->in.at[v + 1] - p->in.at[v];
    uint32_t *maker = ls_arena_alloc(t->arena, n + 1u, sizeof *maker);
    for (uint32_t k = 0; k < n; k++)
        maker[k] = ls_tape_maker(t, p->in.id[p->in.at[v] + k], run);
    ls_tape_remove(t, run);
    for (uint32_t k = 0; k < n; k++)
        if (maker[k] != LS_TAPE_END && t->run[maker[k]].node != LS_NO_ID
            && ls_tape_is_dead(t, maker[k]))
            remove_with_makers(t, maker[k]);
}

/* Does what was chosen. */
static void take(LsTape *t, const Twice *way)
{
    const LsProb *p = t->p;
    if (way->instead == LS_NO_ID) {
        ls_tape_insert(t, p->maker[way->tensor], way->next);
        return;
    }
    provide(t, way->instead, way->of, LEVELS);
    remove_with_makers(t, way->of);     /* and with it run `next`, if that is another one */
}

/* The next read of a tensor that is live while run `peak` runs: by that run itself, if it has no
 * later one. */
static uint32_t read_from(const LsTape *t, uint32_t x, uint32_t peak)
{
    const uint32_t next = ls_tape_next_read(t, x, peak), k = ls_tape_events_before(t, x, peak);
    if (next != LS_TAPE_END || t->p->size[x] == 0 || k >= t->list[x].n
        || ls_tape_event_run(t, x, k) != peak)
        return next;
    if (!ls_tape_event_writes(t, x, k))
        return peak;
    return k + 1 < t->list[x].n && !ls_tape_event_writes(t, x, k + 1)
               ? ls_tape_event_run(t, x, k + 1)
               : LS_TAPE_END;
}

/* The backward result, idle at the peak, that is cheapest to make again, or live there and cheapest
 * to do without. */
static bool cheapest(const LsTape *t, uint32_t peak, Twice *best)
{
    const LsProb *p = t->p;
    *best = (Twice){.instead = LS_NO_ID, .of = LS_NO_ID, .price = -1};
    for (uint32_t x = 0; x < p->nt; x++) {
        const uint32_t v = p->maker[x];
        if (v == LS_NO_ID || p->stuck[v] || p->dag->node[v].kind != LS_DAG_BACKWARD)
            continue;
        const uint32_t next = read_from(t, x, peak);
        if (next == LS_TAPE_END)
            continue;
        const bool idle = ls_tape_next_read(t, x, peak) == next;
        Twice again = {x, next, LS_NO_ID, LS_NO_ID, idle ? price(t, x, peak, next) : -1},
              other = again;
        other.price = price_instead(t, peak, &other);
        if (other.price >= 0 && (again.price < 0 || other.price < again.price))
            again = other;
        if (again.price >= 0 && (best->price < 0 || again.price < best->price))
            *best = again;
    }
    return best->price >= 0;
}

static void offer(LsCandidates *pool, const LsTape *t)
{
    LsSeq seq = {.node = ls_arena_alloc(pool->tmp, t->n + 1u, sizeof *seq.node)};
    ls_tape_store(t, &seq);
    ls_candidates_offer(pool, &seq, "auto");
}

/* Lowers the peak of the sequence step by step, and offers what it finds. */
static void lower(LsCandidates *pool, LsTape *t, const LsSeq *from)
{
    const double step = 0.98;           /* between two offers */
    ls_tape_load(t, from);
    int64_t offered = ls_tape_peak(t);
    for (uint32_t k = 0; k < t->p->n; k++) {
        Twice way;
        if (!cheapest(t, ls_tape_peak_run(t), &way))
            break;
        take(t, &way);
        if (t->bad > 0)
            return;
        if ((double)ls_tape_peak(t) <= step * (double)offered) {
            offered = ls_tape_peak(t);
            offer(pool, t);
        }
    }
    if (ls_tape_peak(t) < offered)
        offer(pool, t);
}

bool ls_waits_for_gradients(const LsProb *p)
{
    enum { FEW = 3 };
    LsArena *tmp = ls_arena_new();
    uint32_t *readers = ls_arena_alloc(tmp, p->nt + 1u, sizeof *readers), updates = 0, most = 0;
    for (uint32_t v = 0; v < p->n; v++) {
        if (!p->used[v])
            continue;
        updates += p->dag->node[v].nupd > 0;
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
            readers[p->in.id[k]]++;
    }
    for (uint32_t x = 0; x < p->nt; x++)
        if (p->maker[x] != LS_NO_ID && p->dag->node[p->maker[x]].kind != LS_DAG_FORWARD
            && readers[x] > most)
            most = readers[x];
    ls_arena_free(tmp);
    return most >= FEW && 2 * most >= updates;
}

void ls_strategy_twice(LsCandidates *pool)
{
    enum { STARTS = 6 };
    LsArena *arena = ls_arena_new();
    LsTape *t = ls_tape_new(pool->prob);
    const uint32_t n = pool->n < STARTS ? pool->n : STARTS;
    LsSeq *start = ls_arena_alloc(arena, n + 1u, sizeof *start);
    for (uint32_t k = 0; k < n; k++)
        start[k] = pool->cand[n > 1 ? (uint64_t)k * (pool->n - 1) / (n - 1) : 0].seq;
    for (uint32_t k = 0; k < n && pool->has_turn; k++)
        lower(pool, t, &start[k]);
    ls_tape_free(t);
    ls_arena_free(arena);
}
