/* scheduler/optima.c -- the front of peak and cost of a tiny graph, by exhaustive searches.
 *
 * The budgets that are searched come from the graph, not from what is asked, so plans stay
 * monotone. The candidates have a name of their own: they must not drive out others of equal
 * figures, whose lives may be easier to pack. */
#include <math.h>

#include "scheduler/optimum.h"
#include "scheduler/strategy.h"

typedef struct Hunt {
    LsCandidates *pool;
    LsArena *arena;             /* of the graph and the schedules */
    const LsBoundGraph *b;
    uint32_t left, each;        /* states to try: in all, in one search */
} Hunt;

/* Offers an optimum (as ls_optimum_plan); its live peak, or -1: there is none, or it took too
 * long. */
static int64_t offer(Hunt *h, int64_t budget)
{
    LsSeq seq;
    uint32_t most = h->left < h->each ? h->left : h->each;
    LsOptimum o = ls_optimum_plan(h->arena, h->b, budget, most, &seq);
    h->left -= o.states;
    if (!o.exact || o.value == INFINITY)
        return -1;
    ls_live(h->pool->prob, &seq, h->pool->live);
    int64_t peak = h->pool->live->peak;
    ls_candidates_offer(h->pool, &seq, "auto-all");
    return peak;
}

/* Some budgets all over the range first, then every one, from the top, until the states run
 * out. */
static void search_front(Hunt *h)
{
    enum { PARTS = 16, PATIENCE = 64 };
    int64_t least = offer(h, 0);                    /* the schedule of the least peak */
    int64_t top = offer(h, INT64_MAX);
    int64_t span = top - (least < 0 ? 0 : least);
    for (int64_t k = 0; k < PARTS && top >= 0; k++)
        offer(h, top - span + (int64_t)((double)span / PARTS * (double)k));
    for (int64_t budget = top - 1; budget >= top - span && budget > 0 && h->left > 0;) {
        int64_t peak = offer(h, budget);
        if (peak < 0)                               /* the next one might be as hard */
            budget -= span / PATIENCE + 1;
        else
            budget = (peak < budget ? peak : budget) - 1;
    }
}

void ls_strategy_optima(LsCandidates *pool, uint32_t effort)
{
    enum { NODES = 32, EACH = 100, IN_ALL = 1000 };       /* states, for a percent of effort */
    if (pool->prob->n == 0 || pool->prob->n > NODES)
        return;
    LsArena *arena = ls_arena_new();
    uint32_t part = effort == 0 || effort > 100 ? 100 : effort;
    Hunt h = {.pool = pool, .arena = arena, .b = ls_bound_graph_new(arena, pool->prob),
              .left = IN_ALL * part, .each = EACH * part};
    search_front(&h);
    ls_arena_free(arena);
}
