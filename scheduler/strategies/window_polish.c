/* scheduler/strategies/window_polish.c -- improves sequences window by window where they recompute.
 *
 * Annealing changes a sequence in one place at a time. Where memory is tight, a cheaper sequence
 * often differs in many places. A window that moves along the sequence finds all of these at
 * once. */
#include <string.h>

#include "scheduler/candidates/peak_targets.h"
#include "scheduler/local_search/window_search.h"
#include "scheduler/strategies/published_strategies.h"

typedef struct Polish {
    LsCandidates *pool;
    const LsProb *p;            /* the pool's */
    LsArena *arena;             /* for one sequence in work */
    LsLive *live;
    uint32_t *runs;             /* by node: its runs in the sequence */
    uint64_t left;              /* states left to try */
    LsLimit *limit;
    bool cut;
} Polish;

static void count_runs(Polish *z, const LsSeq *seq)
{
    for (uint32_t v = 0; v < z->p->n; v++)
        z->runs[v] = 0;
    for (uint32_t s = 0; s < seq->n; s++)
        z->runs[seq->node[s]]++;
}

/* Returns the end of a window of `length` runs that starts at `from`. */
static uint32_t end_of(const LsSeq *seq, uint32_t from, uint32_t length)
{
    return from + length < seq->n ? from + length : seq->n;
}

static bool runs_again(const Polish *z, const LsSeq *seq, uint32_t from, uint32_t to)
{
    for (uint32_t s = from; s < to; s++)
        if (z->runs[seq->node[s]] > 1)
            return true;
    return false;
}

/* Replaces runs from .. from + length - 1 by cheaper ones, or with `fit` by ones within the target.
 * Returns whether it did. */
static bool improve(Polish *z, LsSeq *seq, uint32_t from, uint32_t length, int64_t target,
                    bool fit)
{
    enum { MOST = 4000, SETUP = 200 };              /* states; fixed cost of a window in states */
    LsSeq better;
    LsWindowSpent spent = {.states = SETUP};
    LsWindow w = {.from = from, .to = end_of(seq, from, length),
                  .target = target, .most = (uint32_t)(z->left < MOST ? z->left : MOST),
                  .fit = fit};
    bool found = ls_window_improve(z->arena, z->p, seq, z->live, &w, &better, &spent);
    z->left -= spent.states < z->left ? spent.states : z->left;
    z->limit->work += spent.work;
    z->cut = ls_limit_is_over(z->limit);
    if (!found)
        return false;
    *seq = better;
    count_runs(z, seq);
    ls_live(z->p, seq, z->live);
    return true;
}

static const uint32_t lengths[] = {24, 40};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* Slides windows along the sequence until whole passes find nothing; returns whether anything was
 * found. */
static bool slide(Polish *z, LsSeq *seq, int64_t target)
{
    enum { STEPS = 3 };
    bool any = false;
    for (uint32_t k = 0, since = 0; since < LENGTHS && z->left > 0 && !z->cut; k++) {
        uint32_t len = lengths[k % LENGTHS];
        bool found = false;
        for (uint32_t from = 0; from < seq->n && z->left > 0 && !z->cut; from += len / STEPS)
            if (runs_again(z, seq, from, end_of(seq, from, len)))
                found |= improve(z, seq, from, len, target, false);
        since = found ? 0 : since + 1;
        any |= found;
    }
    return any;
}

/* Brings the sequence below the target, part by part; returns false if that fails. */
static bool lower(Polish *z, LsSeq *seq, int64_t target)
{
    for (uint32_t s = 0; s < seq->n && z->left > 0 && !z->cut;) {
        bool done = z->live->mem[s] <= target;
        for (uint32_t k = 0; k < LENGTHS && !done; k++) {
            uint32_t half = lengths[k] / 2;
            done = improve(z, seq, s < half ? 0 : s - half, lengths[k], target, true);
        }
        if (!done)
            return false;
        s += s < seq->n && z->live->mem[s] <= target;
    }
    return z->live->peak <= target;
}

static LsSeq begin(Polish *z, const LsCand *c)
{
    z->arena = ls_arena_new();
    z->live = ls_live_new(z->arena, z->p);
    z->runs = ls_arena_alloc(z->arena, z->p->n + 1u, sizeof *z->runs);
    LsSeq seq = c->seq;
    count_runs(z, &seq);
    ls_live(z->p, &seq, z->live);
    return seq;
}

/* Returns whether this was tried before, so that its gain, if any, was already offered. */
static bool is_known(Polish *z, const LsCand *c, int64_t target)
{
    uint64_t cost;
    memcpy(&cost, &c->cost, sizeof cost);
    return ls_candidates_seen(z->pool, cost ^ (uint64_t)target * UINT64_C(0x9e3779b97f4a7c15));
}

/* Polishes the cheapest candidate within the target. If a cheaper candidate lies slightly above the
 * target, brings that below and polishes it too. */
static void polish(Polish *z, int64_t target)
{
    const double close = 1 + 1e-9;      /* less is not worth a search */
    const LsCand *c = ls_candidates_within(z->pool, target);
    if (c != NULL && c->cost > z->pool->least_cost * close && !is_known(z, c, target)) {
        LsSeq seq = begin(z, c);
        if (slide(z, &seq, target))
            ls_candidates_offer(z->pool, &seq, "auto");
        ls_arena_free(z->arena);
    }
    c = ls_candidates_within(z->pool, target);
    const LsCand *above = ls_candidates_within(z->pool, target + target / 10);
    if (above != NULL && above != c && !is_known(z, above, target)) {
        LsSeq seq = begin(z, above);
        if (lower(z, &seq, target)) {
            slide(z, &seq, target);
            ls_candidates_offer(z->pool, &seq, "auto");
        }
        ls_arena_free(z->arena);
    }
}

bool ls_strategy_polish(LsCandidates *pool, int64_t store_all, LsLimit *limit)
{
    enum { STATES = 1500, SHARES = 8 };             /* per percent of effort */
    if (pool->n == 0)
        return false;
    LsTargets targets = ls_targets(pool->arena, pool->cand[0].peak, store_all, true);
    Polish z = {.pool = pool, .p = pool->prob, .limit = limit};
    uint64_t in_all = (uint64_t)STATES * limit->effort;
    for (uint32_t k = targets.n; k-- > 0 && in_all > 0 && !z.cut;) {
        uint64_t share = in_all / SHARES + 1;       /* tight targets have more to gain */
        z.left = share;
        polish(&z, targets.bytes[k]);
        in_all -= share - z.left;
    }
    return z.cut;
}

/* Brings the candidate of least peak below `target`, and makes the result cheaper. Returns whether
 * it did. */
static bool tighten(Polish *z, int64_t target)
{
    LsSeq seq = begin(z, ls_candidates_least(z->pool));
    const bool found = lower(z, &seq, target);
    if (found) {
        slide(z, &seq, target);
        ls_candidates_offer(z->pool, &seq, "auto");
    }
    ls_arena_free(z->arena);
    return found;
}

void ls_strategy_tighten(LsCandidates *pool, LsLimit *limit)
{
    enum { STATES = 1500 };                         /* per percent of effort */
    static const double part[] = {0.03, 0.01, 0.003, 0};        /* of the peak, to take off */
    if (pool->n == 0)
        return;
    Polish z = {.pool = pool, .p = pool->prob, .limit = limit,
                .left = (uint64_t)STATES * limit->effort};
    for (size_t k = 0; k < sizeof part / sizeof *part && z.left > 0 && !z.cut;) {
        const int64_t peak = ls_candidates_least(pool)->peak;
        k += !tighten(&z, peak - 1 - (int64_t)(part[k] * (double)peak));
    }
}
