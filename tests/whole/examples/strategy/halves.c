/* scheduler/strategies/halves.c -- "halves": two segments of as many nodes each. */
#include "scheduler/order/run_order.h"
#include "scheduler/strategies/published_strategies.h"

/* The first n nodes: nodes are listed after those that they read, so this is a lower set. */
static const uint64_t *first_nodes(const LsCandidates *pool, const LsForward *f, uint32_t n)
{
    uint64_t *set = ls_arena_alloc(pool->tmp, f->nword, sizeof *set);
    for (uint32_t i = 0; i < n; i++)
        set[i / 64] |= UINT64_C(1) << i % 64;
    return set;
}

void ls_strategy_halves(LsCandidates *pool, const LsForward *f)
{
    if (f->n < 2)
        return;
    const uint64_t *cut[] = {first_nodes(pool, f, f->n / 2), first_nodes(pool, f, f->n)};
    LsSeq seq = ls_seq_canonical(pool->tmp, f, cut, 2);
    ls_candidates_offer_moved(pool, pool->prob, &seq, "halves");
}
