/* scheduler/strategies/run_twice.c -- runs backward nodes twice instead of keeping their results.
 *
 * If something waits for all gradients, such as a clipping by their norm, every gradient is read twice: for the norm,
 * and much later by its update. Keeping the gradient costs its bytes; making it again costs its node's time, and the
 * bytes of the operands as long as nothing else keeps them. Gradients of large weights have small operands. Searches that
 * recompute forward values hardly come here: a second run pays only if the operands stay. */
#include "scheduler/order/edited_order.h"
#include "scheduler/strategies/published_strategies.h"

typedef struct Twice { uint32_t tensor, next; double price; } Twice;

/* Bytes that operand x of a second run adds at the peak: its instance is live there already, or was made before, or is
 * missing: then INT64_MAX. */
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

/* The backward result, idle at the peak, that is cheapest to make again. */
static bool cheapest(const LsTape *t, uint32_t peak, Twice *best)
{
    const LsProb *p = t->p;
    best->price = -1;
    for (uint32_t x = 0; x < p->nt; x++) {
        const uint32_t v = p->maker[x];
        if (v == LS_NO_ID || p->stuck[v] || p->dag->node[v].kind != LS_DAG_BACKWARD)
            continue;
        const uint32_t next = ls_tape_next_read(t, x, peak);
        const double is = next == LS_TAPE_END ? -1 : price(t, x, peak, next);
        if (is >= 0 && (best->price < 0 || is < best->price))
            *best = (Twice){x, next, is};
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
        ls_tape_insert(t, t->p->maker[way.tensor], way.next);
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
