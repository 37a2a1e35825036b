/* scheduler/candidates/candidate_pool.c -- keeps the Pareto front of each strategy. */
#include "scheduler/candidates/candidate_pool.h"

#include <assert.h>
#include <string.h>

#include "scheduler/graph/backward_start.h"
#include "scheduler/order/place_weight_gradients.h"
#include "scheduler/order/run_order.h"

LsCandidates *ls_candidates_new(LsArena *arena, const LsProb *p)
{
    LsCandidates *pool = ls_arena_alloc(arena, 1, sizeof *pool);
    *pool = (LsCandidates){.prob = p, .arena = arena};
    pool->tmp = ls_arena_new();
    pool->live = ls_live_new(pool->tmp, p);
    pool->has_turn = ls_turn_mark(p, ls_arena_alloc(pool->tmp, p->n + 1u, sizeof(bool)));
    return pool;
}

void ls_candidates_free(LsCandidates *pool)
{
    for (uint32_t k = 0; k < pool->n; k++)
        ls_arena_free(pool->cand[k].arena);
    ls_arena_free(pool->tmp);
}

bool ls_candidates_rough(const LsCandidates *pool)
{
    enum { LARGE = 200 };
    return !pool->has_turn && pool->prob->n >= LARGE;
}

bool ls_candidates_hasty(const LsCandidates *pool)
{
    enum { LARGE = 800 };
    return ls_candidates_rough(pool) && pool->prob->n >= LARGE;
}

uint32_t ls_candidates_thorough(const LsCandidates *pool)
{
    enum { SMALL = 300, SOME = 16, FEW = 3 };
    return pool->prob->n < SMALL ? UINT32_MAX : ls_candidates_hasty(pool) ? FEW : SOME;
}

void ls_candidates_renew(LsCandidates *pool)
{
    pool->since = 0;
    ls_arena_free(pool->tmp);
    pool->tmp = ls_arena_new();
    pool->live = ls_live_new(pool->tmp, pool->prob);
}

/* The new pool has its own arena. */
LsCandidates *ls_candidates_beside(const LsCandidates *pool, uint32_t n)
{
    LsArena *arena = ls_arena_new();
    LsCandidates *beside = ls_candidates_new(arena, pool->prob);
    beside->least_cost = pool->least_cost;
    beside->n = n < pool->n ? n : pool->n;
    beside->cand = ls_arena_grow(arena, beside->cand, 0, beside->n + 1u, sizeof *beside->cand,
                                 &beside->room);
    for (uint32_t k = 0; k < beside->n; k++)
        beside->cand[k] = pool->cand[k];
    return beside;
}

static void renew(LsCandidates *pool)
{
    enum { OFTEN = 64 };
    if (++pool->since >= OFTEN)
        ls_candidates_renew(pool);
}

/* Inserts a copy of c.seq with these figures and drops the candidates it dominates. */
static void put(LsCandidates *pool, LsCand c)
{
    assert(c.peak >= 0 && c.cost >= 0);
    const LsSeq seq = c.seq;
    uint32_t at = 0, left = 0;
    for (uint32_t k = 0; k < pool->n; k++) {
        const LsCand *o = &pool->cand[k];
        if (o->peak <= c.peak && o->cost <= c.cost && strcmp(o->strategy, c.strategy) == 0)
            return;
    }
    for (uint32_t k = 0; k < pool->n; k++) {        /* drop the dominated candidates */
        LsCand o = pool->cand[k];
        if (o.peak >= c.peak && o.cost >= c.cost && strcmp(o.strategy, c.strategy) == 0)
            continue;
        pool->cand[left++] = o;
        at += o.cost < c.cost || (o.cost == c.cost && o.peak <= c.peak);
    }
    pool->n = left;
    pool->cand = ls_arena_grow(pool->arena, pool->cand, pool->n, pool->n + 1u, sizeof *pool->cand,
                               &pool->room);
    memmove(pool->cand + at + 1, pool->cand + at, (pool->n - at) * sizeof *pool->cand);
    pool->n++;
    c.aside = pool->aside;
    c.seq = (LsSeq){ls_arena_alloc(pool->arena, seq.n + 1u, sizeof *seq.node), seq.n};
    memcpy(c.seq.node, seq.node, seq.n * sizeof *seq.node);
    pool->cand[at] = c;
}

static void offer(LsCandidates *pool, const LsSeq *seq, const char *strategy)
{
    ls_live(pool->prob, seq, pool->live);
    put(pool, (LsCand){.seq = *seq, .peak = pool->live->peak, .cost = pool->live->cost,
                       .strategy = strategy});
}

void ls_candidates_join(LsCandidates *pool, LsCandidates *beside)
{
    for (uint32_t k = 0; k < beside->n; k++) {      /* the problem is the same, so the figures
                                                     * hold */
        const LsCand *c = &beside->cand[k];
        put(pool, (LsCand){.seq = c->seq, .peak = c->peak, .cost = c->cost,
                           .strategy = c->strategy});
    }
    LsArena *arena = beside->arena;
    ls_candidates_free(beside);
    ls_arena_free(arena);
}

void ls_candidates_offer(LsCandidates *pool, const LsSeq *seq, const char *strategy)
{
    offer(pool, seq, strategy);
    renew(pool);
}

void ls_candidates_offer_as(LsCandidates *pool, const char *strategy, const char *other)
{
    uint32_t n = 0;
    LsSeq *seq = ls_arena_alloc(pool->arena, pool->n + 1u, sizeof *seq);
    for (uint32_t k = 0; k < pool->n; k++)
        if (strcmp(pool->cand[k].strategy, strategy) == 0)
            seq[n++] = pool->cand[k].seq;
    for (uint32_t k = 0; k < n; k++)
        ls_candidates_offer(pool, &seq[k], other);
}

void ls_candidates_offer_moved(LsCandidates *pool, const LsProb *p, const LsSeq *seq,
                               const char *strategy)
{
    LsSeq moved = ls_seq_place_leaves(pool->tmp, p, seq);
    offer(pool, seq, strategy);
    offer(pool, &moved, strategy);
    renew(pool);
}

static bool insert(uint64_t *table, uint32_t room, uint64_t x)
{
    uint32_t at = (uint32_t)(x % room);
    while (table[at] != 0 && table[at] != x)
        at = (at + 1) % room;
    bool there = table[at] == x;
    table[at] = x;
    return there;
}

const LsCand *ls_candidates_least(const LsCandidates *pool)
{
    const LsCand *least = pool->cand;
    for (uint32_t k = 1; k < pool->n; k++)
        least = pool->cand[k].peak < least->peak ? &pool->cand[k] : least;
    return least;
}

const LsCand *ls_candidates_within(const LsCandidates *pool, int64_t peak)
{
    for (uint32_t k = 0; k < pool->n; k++)
        if (pool->cand[k].peak <= peak)
            return &pool->cand[k];
    return NULL;
}

bool ls_candidates_seen(LsCandidates *pool, uint64_t fingerprint)
{
    if (2 * (pool->nseen + 1) > pool->seen_room) {
        uint32_t room = 4 * pool->seen_room + 1021;
        uint64_t *table = ls_arena_alloc(pool->arena, room, sizeof *table);
        for (uint32_t k = 0; k < pool->seen_room; k++)
            if (pool->seen[k] != 0)
                insert(table, room, pool->seen[k]);
        pool->seen = table;
        pool->seen_room = room;
    }
    bool there = insert(pool->seen, pool->seen_room, fingerprint | 1);
    pool->nseen += !there;
    return there;
}
