/* scheduler/strategy.c -- the published strategies as candidates. */
#include "scheduler/strategy.h"

#include <math.h>
#include <string.h>

#include "scheduler/exact.h"
#include "scheduler/least_budget.h"
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
    enum { MOST = 64 };         /* strategies tried of one front, evenly by place */
    LsArena *arena = ls_arena_new();
    LsStrategies all = ls_partition(arena, f, fam, &o);
    uint32_t n = all.n < MOST ? all.n : MOST;
    int64_t peak = -1;
    for (uint32_t k = 0; k < n; k++)
        offer(pool, f, &all.item[n < MOST ? k : (uint64_t)k * (all.n - 1) / (MOST - 1)], name);
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

/* The next budget of a sweep, below the peak that was reached. */
static int64_t next_budget(int64_t budget, double step, int64_t reached)
{
    int64_t next = (int64_t)((double)budget * (1 - step));
    return next < reached - 1 ? next : reached - 1;
}

/* Both DPs; the formula's peak of the first strategy found, or -1. */
static int64_t run_dps(LsCandidates *pool, const LsForward *f, const LsFamily *fam, LsDpOptions o,
                       const char *tc, const char *mc)
{
    int64_t reached[2] = {-1, -1};
    for (int m = 0; m < 2; m++) {
        o.greatest = m;
        if ((m ? mc : tc) != NULL)
            reached[m] = run_dp(pool, f, fam, o, m ? mc : tc);
    }
    return tc != NULL ? reached[0] : reached[1];
}

void ls_strategy_dp(LsCandidates *pool, const LsForward *f, const LsFamily *fam, const char *tc,
                    const char *mc)
{
    /* finer where a DP is cheap; the measure is the input's, so that plans are the same
     * everywhere */
    double pairs = (double)fam->n * fam->n, step = 0.02 * pow(pairs / 1e4, 0.45);
    step = step < 0.02 ? 0.02 : step > 0.25 ? 0.25 : step;
    LsDpOptions o = {.budget = widest(f, fam),
                     .most_points = pairs < 15000 ? 256 : pairs < 1e6 ? 64 : 48,
                     .cells = pairs < 15000 ? 1024 : pairs < 1e5 ? 768 : pairs < 4e5 ? 320 : 128};
    int64_t kept = 0, peak;
    while ((peak = run_dps(pool, f, fam, o, tc, mc)) >= 0) {
        kept = o.budget;
        o.budget = next_budget(o.budget, step, peak);
    }
    if (kept == 0)
        return;
    LsArena *scratch = ls_arena_new();              /* the steps go over the least budget */
    o.budget = ls_least_budget(scratch, f, fam, kept);
    ls_arena_free(scratch);
    run_dps(pool, f, fam, o, tc, mc);
}

/* ---- optima ---- */

typedef struct Rows { LsArena *arena; uint64_t *set; uint32_t n, room, nword; } Rows;

static void add_row(Rows *r, const uint64_t *set)
{
    r->set = ls_arena_grow(r->arena, r->set, (size_t)r->n * r->nword, (size_t)(r->n + 1) * r->nword,
                           sizeof *set, &r->room);
    memcpy(r->set + (size_t)r->n++ * r->nword, set, r->nword * sizeof *set);
}

/* What times are rounded to: a sum of many parts of different length has too many values for the
 * optimum to be found. */
static double unit_of(const LsForward *f, const LsFamily *fam)
{
    double all = fam->time[fam->n - 1];
    bool small = all <= 16384;
    for (uint32_t v = 0; v < f->n; v++)
        small &= f->time[v] == floor(f->time[v]);
    return small ? 0 : all / 1024;
}

const LsFamily *ls_strategy_exact(LsCandidates *pool, const LsForward *f, const LsFamily *fam,
                                  const char *tc, const char *mc, uint32_t *unknown)
{
    enum { LOOKS = 100000000 };     /* a few seconds */
    static const double step = 0.12;
    LsArena *arena = ls_arena_new();
    LsExact *x = ls_exact_new(arena, f, fam, 0);
    const LsFamily *pruned = ls_family_pruned(f);
    Rows rows = {.arena = arena, .nword = f->nword};
    LsDpOptions o = {.budget = widest(f, fam), .unit = unit_of(f, fam), .most_looks = LOOKS};
    bool open[2] = {tc != NULL, mc != NULL}, any = true;
    for (uint32_t i = 0; i < pruned->n; i++)
        add_row(&rows, pruned->low + (size_t)i * f->nword);
    *unknown = 0;
    while (any) {
        int64_t peak = -1;
        any = false;
        for (int m = 1; m >= 0; m--) {
            LsStrategy s;
            LsExactEnd end = LS_EXACT_NONE;
            o.greatest = m;
            if (open[m])
                end = ls_exact_solve(arena, x, &o, &s);
            open[m] &= end != LS_EXACT_UNKNOWN;     /* the next one would hardly be easier */
            *unknown += end == LS_EXACT_UNKNOWN;
            if (end != LS_EXACT_FOUND)
                continue;
            offer(pool, f, &s, m ? mc : tc);
            for (uint32_t k = 0; k < s.ncut; k++)
                add_row(&rows, s.cut[k]);
            peak = s.peak;
            any = true;
        }
        o.budget = any ? next_budget(o.budget, step, peak) : 0;
    }
    const LsFamily *used = ls_family_of(f, rows.set, rows.n);
    ls_arena_free(arena);
    return used;
}
