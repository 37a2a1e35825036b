/* scheduler/strategies/anneal_least_peak.c -- simulated annealing for the least peak: first only
 * bytes count, then the results are made cheaper. */
#include "scheduler/local_search/annealing.h"
#include "scheduler/strategies/published_strategies.h"

/* Anneals from the sequence down, each time by a fraction of the peak, until that fails several
 * times. */
static void sink(LsAnneal *s, const LsSeq *seq, int64_t peak)
{
    enum { PATIENCE = 3 };
    const double part = 0.95, less = 1 - (1 - part) / 3;
    int64_t target = (int64_t)((double)peak * part);
    ls_anneal_load(s, seq, target);
    for (int failures = 0; failures < PATIENCE && !s->cut;) {
        s->m->target = target;
        ls_anneal_repair(s);
        ls_anneal_run(s);
        bool reached = s->front.n > 0 && ls_front_least(&s->front)->peak <= target;
        failures = reached ? 0 : failures + 1;
        if (reached)
            target = (int64_t)((double)target * part);
        else if (failures == PATIENCE - 1 && s->front.n > 0)
            target = (int64_t)((double)ls_front_least(&s->front)->peak * less);
    }
}

/* Returns the candidate of least peak among a few random ones. */
static const LsCand *one_of_least(LsAnneal *s, const LsCandidates *pool)
{
    enum { TRIES = 4 };
    const LsCand *least = &pool->cand[ls_moves_random(s->m, pool->n)];
    for (int k = 1; k < TRIES; k++) {
        const LsCand *c = &pool->cand[ls_moves_random(s->m, pool->n)];
        least = c->peak < least->peak ? c : least;
    }
    return least;
}

/* Sinks from a sequence of low peak, of the pool or the front, with ever more moves. */
static void sink_from_many(LsAnneal *s, const LsCandidates *pool)
{
    enum { ROUNDS = 1000, EVERY = 6, MOST = 1 << 20, OFTEN = 4 };
    for (uint32_t round = 0; round < ROUNDS && !s->cut; round++) {
        uint32_t pick = ls_moves_random(s->m, s->front.n > 0 ? OFTEN : 1);
        if (pick > 0) {
            const LsFrontItem *least = ls_front_least(&s->front);
            least -= pick <= s->front.n ? pick - 1 : 0;
            sink(s, &least->seq, least->peak);
        } else {
            const LsCand *c = round > 0 ? one_of_least(s, pool) : ls_candidates_least(pool);
            sink(s, &c->seq, c->peak);
        }
        if (round % EVERY == EVERY - 1 && s->moves < MOST)
            s->moves += s->moves / 2;
    }
}

/* Makes the results cheaper, from the least peak up. */
static void settle(LsAnneal *s)
{
    static const double above[] = {1, 1.03, 1.07, 1.12};
    if (s->front.n == 0)
        return;
    int64_t least = ls_front_least(&s->front)->peak;
    for (size_t k = 0; k < sizeof above / sizeof *above && !s->cut; k++) {
        int64_t target = (int64_t)((double)least * above[k]);
        ls_anneal_load(s, &ls_front_best(&s->front, target)->seq, target);
        ls_anneal_take_back(s);
        ls_anneal_run(s);
    }
}

void ls_strategy_least(LsCandidates *pool, const LsLimit *limit, uint32_t turn)
{
    const double most = 0.75;                       /* fraction of the work for the peak; the rest
                                                     * is for the cost */
    if (pool->n == 0 || pool->cand[0].peak == 0)
        return;
    LsArena *arena = ls_arena_new();
    LsLimit part = ls_limit_part(limit, limit->effort, most);
    LsAnneal s = ls_anneal_new(arena, pool->prob, pool->cand[0].peak, &part);
    uint32_t usual = s.moves;
    s.m->rnd += turn;
    s.moves = usual / 3 + 1;
    ls_anneal_mood(&s, 10, 200);
    sink_from_many(&s, pool);
    s.limit.most = limit->most;
    s.cut = false;
    s.moves = usual;
    ls_anneal_mood(&s, 1, 10);
    settle(&s);
    ls_anneal_offer(&s, pool);
    ls_anneal_free(&s);
    ls_arena_free(arena);
}
