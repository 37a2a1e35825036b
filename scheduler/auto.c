/* scheduler/auto.c -- the best of all strategies, repaired and improved for a grid of targets.
 *
 * The targets lie between the peak without recomputation and what the largest single node needs;
 * they do not depend on the budget, so that plans stay monotone. At each, the plan of the target
 * above, and those candidates of the pool that come near, are brought within it. */
#include <string.h>

#include "scheduler/improve.h"
#include "scheduler/strategy.h"

typedef struct Auto {
    LsCandidates *pool;
    LsSeq now, best, chain;     /* in the pool's arena, room entries each */
    uint32_t room;
    double best_cost;
    int64_t target;
} Auto;

static void copy(LsSeq *to, const LsSeq *from)
{
    memcpy(to->node, from->node, from->n * sizeof *to->node);
    to->n = from->n;
}

/* Brings `from` within the target; the result goes to the pool, and to best if it is. */
static void attempt(Auto *a, const LsSeq *from)
{
    LsCandidates *pool = a->pool;
    if (from->n + pool->prob->n > a->room)
        return;
    copy(&a->now, from);
    if (!ls_seq_repair(pool, &a->now, a->room, a->target))
        return;
    ls_seq_improve(pool, &a->now, a->target);
    ls_live(pool->prob, &a->now, pool->live);
    if (pool->live->peak > a->target)
        return;
    if (a->best_cost < 0 || pool->live->cost < a->best_cost) {
        a->best_cost = pool->live->cost;
        copy(&a->best, &a->now);
    }
    ls_candidates_offer(pool, &a->now, "auto");
}

/* The cheapest candidate with a peak of at most `most`, or LS_NO_ID. */
static uint32_t cheapest(const LsCandidates *pool, int64_t most)
{
    for (uint32_t k = 0; k < pool->n; k++)
        if (pool->cand[k].peak <= most)
            return k;
    return LS_NO_ID;
}

static int64_t largest_node(const LsProb *p)
{
    int64_t most = 0;
    for (uint32_t v = 0; v < p->n; v++) {
        int64_t bytes = p->workspace[v];
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
            bytes += p->size[p->in.id[k]];
        for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1] && !p->inplace; k++)
            bytes += p->size[p->out.id[k]];
        most = p->needed[v] && bytes > most ? bytes : most;
    }
    return most;
}

void ls_strategy_auto(LsCandidates *pool)
{
    static const double near[] = {1, 1.06, 1.15};
    LsProb *p = pool->prob;
    Auto a = {.pool = pool, .room = 4 * p->n + 64};
    a.now.node = ls_arena_alloc(pool->arena, a.room, sizeof *a.now.node);
    a.best.node = ls_arena_alloc(pool->arena, a.room, sizeof *a.best.node);
    a.chain.node = ls_arena_alloc(pool->arena, a.room, sizeof *a.chain.node);
    if (pool->n == 0)
        return;
    int64_t top = pool->cand[0].peak, bottom = largest_node(p);     /* the first costs the least */
    copy(&a.chain, &pool->cand[0].seq);
    int steps = (int)(50000 / (p->n + 1)), failures = 0;
    steps = steps < 28 ? 28 : steps > 56 ? 56 : steps;
    for (int k = 1; k <= steps && failures < 3; k++) {
        a.target = top - (int64_t)((double)(top - bottom) * k / steps);
        a.best_cost = -1;
        attempt(&a, &a.chain);
        uint32_t last = LS_NO_ID;
        for (size_t j = 0; j < sizeof near / sizeof *near; j++) {
            uint32_t c = cheapest(pool, (int64_t)((double)a.target * near[j]));
            if (c == LS_NO_ID || c == last)
                continue;
            last = c;
            attempt(&a, &pool->cand[c].seq);
        }
        failures = a.best_cost < 0 ? failures + 1 : 0;
        if (a.best_cost >= 0)
            copy(&a.chain, &a.best);
    }
}
