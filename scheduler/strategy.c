/* scheduler/strategy.c -- the published strategies as candidates. */
#include "scheduler/strategy.h"

#include <math.h>

#include "scheduler/sequence.h"

void ls_strategy_none(LsCandidates *pool)
{
    LsSeq seq = ls_seq_plain(pool->prob);
    LsSeq moved = ls_seq_place_leaves(pool->prob, &seq);
    ls_candidates_offer(pool, &seq, "none");
    ls_candidates_offer(pool, &moved, "none");
}

static uint64_t fingerprint(const LsForward *f, const LsStrategy *s, const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    for (uint32_t i = 0; i < s->ncut; i++)
        for (uint32_t w = 0; w < f->nword; w++) {
            hash = (hash ^ s->cut[i][w]) * UINT64_C(0x9e3779b97f4a7c15);
            hash ^= hash >> 29;
        }
    return hash;
}

static void offer(LsCandidates *pool, const LsForward *f, const LsStrategy *s, const char *name)
{
    if (ls_candidates_seen(pool, fingerprint(f, s, name)))
        return;
    LsSeq seq = ls_seq_canonical(f, s->cut, s->ncut);
    LsSeq moved = ls_seq_place_leaves(pool->prob, &seq);
    ls_candidates_offer(pool, &seq, name);
    ls_candidates_offer(pool, &moved, name);
}

void ls_strategy_chen(LsCandidates *pool, const LsForward *f)
{
    LsArena *arena = ls_arena_new();
    LsStrategies all = ls_chen(arena, f);
    for (uint32_t k = 0; k < all.n; k++)
        offer(pool, f, &all.item[k], "chen");
    ls_arena_free(arena);
}

/* One DP; the formula's peak of its first strategy, or -1 when there is none. */
static int64_t run_dp(LsCandidates *pool, const LsForward *f, const LsFamily *fam, LsDpOptions o,
                      const char *name)
{
    LsArena *arena = ls_arena_new();
    LsStrategies all = ls_partition(arena, f, fam, &o);
    int64_t peak = -1;
    for (uint32_t k = 0; k < all.n; k++)
        offer(pool, f, &all.item[k], name);
    if (all.n > 0) {
        ls_strategy_price(arena, f, false, &all.item[0]);
        peak = all.item[0].peak;
    }
    ls_arena_free(arena);
    return peak;
}

/* Bytes that no strategy needs more of, by the formula. */
static int64_t widest(const LsForward *f, const LsFamily *fam)
{
    int64_t most = 0, all = 0;
    for (uint32_t i = 0; i < fam->n; i++)
        most = fam->halo[i] > most ? fam->halo[i] : most;
    for (uint32_t v = 0; v < f->n; v++)
        all += f->mem[v];
    return 3 * all + most;
}

void ls_strategy_dp(LsCandidates *pool, const LsForward *f, const LsFamily *fam, const char *tc,
                    const char *mc)
{
    enum { EXACT = 15000 };
    /* finer where a DP is cheap; the measure is the input's, so that plans are the same
     * everywhere */
    double pairs = (double)fam->n * fam->n, step = 0.02 * pow(pairs / 1e4, 0.45);
    double parts = pairs < 1e5 ? 768 : pairs < 4e5 ? 320 : pairs < 1e7 ? 128 : 48;
    step = step < 0.02 ? 0.02 : step > 0.25 ? 0.25 : step;
    LsDpOptions o = {.budget = widest(f, fam), .most_points = pairs < EXACT ? 1024 : 64,
                     .slack = pairs < EXACT ? 0 : fam->time[fam->n - 1] / parts};
    for (;;) {
        int64_t tight = -1;
        if (tc != NULL) {
            o.greatest = false;
            tight = run_dp(pool, f, fam, o, tc);
        }
        if (mc != NULL) {
            o.greatest = true;
            int64_t other = run_dp(pool, f, fam, o, mc);
            tight = tc != NULL ? tight : other;
        }
        if (tight < 0)
            return;
        int64_t next = (int64_t)((double)o.budget * (1 - step));
        o.budget = next < tight - 1 ? next : tight - 1;
    }
}
