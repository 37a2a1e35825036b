/* scheduler/strategies/published_strategies.c -- the published strategies as candidates. */
#include "scheduler/strategies/published_strategies.h"

#include <math.h>
#include <string.h>

#include "base/fnv.h"
#include "scheduler/algorithms/tasks.h"
#include "scheduler/lower_sets/branch_and_bound.h"
#include "scheduler/lower_sets/least_formula_budget.h"
#include "scheduler/order/run_order.h"

bool ls_strategy_counts(const char *want, const char *part)
{
    size_t n = strlen(want);
    return strcmp(want, "auto") == 0 || strcmp(part, "none") == 0
           || (strncmp(part, want, n) == 0 && (part[n] == '\0' || part[n] == '-'));
}

void ls_strategy_none(LsCandidates *pool)
{
    LsSeq seq = ls_seq_plain(pool->tmp, pool->prob);
    ls_candidates_offer_moved(pool, pool->prob, &seq, "none");
}

static uint64_t fingerprint(const LsForward *f, const LsStrategy *s, const char *name)
{
    uint64_t hash = ls_fnv_text(LS_FNV_START, name);
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
    LsSeq seq = ls_seq_canonical(pool->tmp, f, s->cut, s->ncut);
    ls_candidates_offer_moved(pool, pool->prob, &seq, name);
}

void ls_strategy_chen(LsCandidates *pool, const LsForward *f)
{
    LsArena *arena = ls_arena_new();
    LsStrategies all = ls_chen(arena, f);
    for (uint32_t k = 0; k < all.n; k++)
        offer(pool, f, &all.item[k], "chen");
    ls_arena_free(arena);
}

/* Runs one DP. Returns the formula's peak of its first strategy, or -1 if there is none. */
static int64_t run_dp(LsCandidates *pool, const LsForward *f, const LsFamily *fam, LsDpOptions o,
                      const char *name)
{
    enum { MOST = 64 };         /* strategies tried per front, evenly by place */
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

/* Returns an upper bound on the bytes that any strategy needs by the formula. */
static int64_t widest(const LsForward *f, const LsFamily *fam)
{
    int64_t most = 0, all = 0;
    for (uint32_t i = 0; i < fam->n; i++)
        most = fam->halo[i] > most ? fam->halo[i] : most;
    for (uint32_t v = 0; v < f->n; v++)
        all += f->mem[v];
    return 3 * all + most;
}

/* Returns the next budget of a sweep, below the peak reached. */
static int64_t next_budget(int64_t budget, double step, int64_t reached)
{
    int64_t next = (int64_t)((double)budget * (1 - step));
    return next < reached - 1 ? next : reached - 1;
}

/* The time-centred and the memory-centred DP in parallel, each with its own candidates. */
typedef struct Dps {
    LsCandidates *pool[2];
    const LsForward *f;
    const LsFamily *fam;
    const char *name[2];        /* NULL: this DP does not run */
    LsDpOptions o;
    int64_t reached[2];         /* the formula's peak of the first strategy, or -1 */
} Dps;

static void run_one(void *what, uint32_t m)
{
    Dps *d = what;
    LsDpOptions o = d->o;
    o.greatest = m;
    d->reached[m] = d->name[m] == NULL ? -1
                    : run_dp(d->pool[m], d->f, d->fam, o, d->name[m]);
}

static int64_t run_dps(Dps *d)
{
    ls_side_by_side(2, run_one, d);
    return d->reached[d->name[0] == NULL];
}

/* Sweeps from the largest useful budget down to the least. */
static void sweep_dps(Dps *d, double step)
{
    int64_t kept = 0, peak;
    while ((peak = run_dps(d)) >= 0) {
        kept = d->o.budget;
        d->o.budget = next_budget(d->o.budget, step, peak);
    }
    if (kept == 0)
        return;
    LsArena *scratch = ls_arena_new();              /* the steps may skip the least budget */
    d->o.budget = ls_least_budget(scratch, d->f, d->fam, kept);
    ls_arena_free(scratch);
    run_dps(d);
}

void ls_strategy_dp(LsCandidates *pool, const LsForward *f, const LsFamily *fam, const char *tc,
                    const char *mc, bool fine)
{
    /* finer where a DP is cheap; this depends on the input alone, so that plans are the same
     * everywhere */
    double pairs = (double)fam->n * fam->n, step = 0.02 * pow(pairs / 1e4, 0.45);
    step *= fine ? 1 : 2.5;
    step = step < 0.02 ? 0.02 : step > 0.25 ? 0.25 : step;
    LsCandidates *beside = ls_candidates_beside(pool, 1);
    Dps d = {.pool = {pool, beside}, .f = f, .fam = fam, .name = {tc, mc},
             .o = {.budget = widest(f, fam),
                   .most_points = pairs < 15000 ? 256 : pairs < 1e6 ? 64 : 48,
                   .cells = pairs < 15000 ? 1024 : pairs < 1e5 ? 768 : pairs < 4e5 ? 320 : 128}};
    sweep_dps(&d, step);
    ls_candidates_join(pool, beside);
}

/* ---- optima ---- */

typedef struct Rows { LsArena *arena; uint64_t *set; uint32_t n, room, nword; } Rows;

static void add_row(Rows *r, const uint64_t *set)
{
    r->set = ls_arena_grow(r->arena, r->set, (size_t)r->n * r->nword, (size_t)(r->n + 1) * r->nword,
                           sizeof *set, &r->room);
    memcpy(r->set + (size_t)r->n++ * r->nword, set, r->nword * sizeof *set);
}

/* Returns the unit for rounding times: sums of many different times have too many values for the
 * search to find the optimum. */
static double unit_of(const LsForward *f, const LsFamily *fam)
{
    double all = fam->time[fam->n - 1];
    bool small = all <= 16384;
    for (uint32_t v = 0; v < f->n; v++)
        small &= f->time[v] == floor(f->time[v]);
    return small ? 0 : all / 1024;
}

/* The optima of one kind over the budgets of a sweep. */
typedef struct Optima {
    const char *name;
    bool open;                  /* the next optimum may be within the work limit */
    int64_t peak;               /* the formula's peak of the last optimum; -1: none yet */
    double time;                /* time of the last optimum */
} Optima;

typedef struct Sweep {
    LsCandidates *pool;
    const LsForward *f;
    const LsExact *x;
    LsArena *arena;
    LsDpOptions o;
    Rows rows;
    uint32_t unknown;
} Sweep;

/* Finds the optimum within the budget; an earlier optimum remains optimal down to its own peak.
 * Returns false if there is none or it is unknown. */
static bool find_optimum(Sweep *w, Optima *op)
{
    LsStrategy s;
    if (!op->open || (op->peak >= 0 && op->peak <= w->o.budget))
        return op->open;
    LsExactEnd end = ls_exact_solve(w->arena, w->x, &w->o, &s);
    op->open = end != LS_EXACT_UNKNOWN;             /* the next optimum would hardly be easier */
    w->unknown += end == LS_EXACT_UNKNOWN;
    if (end != LS_EXACT_FOUND)
        return false;
    offer(w->pool, w->f, &s, op->name);
    for (uint32_t k = 0; k < s.ncut; k++)
        add_row(&w->rows, s.cut[k]);
    op->peak = s.peak;
    op->time = s.time;
    return true;
}

/* Sweeps falling budgets. For a large family it skips some: without recomputation only the least
 * peak matters, and the greatest times differ little. */
static void sweep_optima(Sweep *w, Optima op[2], bool large)
{
    static const double step = 0.12, leap = 0.4;
    bool leaping = large && op[0].open, any = true;
    int64_t last_free = 0;
    for (uint32_t round = 0; any; round++) {
        int64_t peak = -1;
        any = false;
        for (int m = 1; m >= 0; m--) {
            bool skipped = m == 1 && large && round % 2 == 1 && op[0].open;
            w->o.greatest = m;
            if (skipped || !find_optimum(w, &op[m]))
                continue;
            peak = op[m].peak;
            any = true;
        }
        bool back = leaping && last_free > 0 && (!any || op[0].time > 0);
        leaping &= any && op[0].time <= 0;
        if (back)
            any = true;                             /* back to the last budget without
                                                     * recomputation */
        else if (leaping)
            last_free = peak;
        w->o.budget = back ? next_budget(last_free, step, last_free)
                      : any ? next_budget(w->o.budget, leaping ? leap : step, peak) : 0;
    }
}

const LsFamily *ls_strategy_exact(LsCandidates *pool, const LsForward *f, const LsFamily *fam,
                                  const char *tc, const char *mc, uint64_t looks,
                                  uint32_t *unknown)
{
    enum { LOOKS = 100000000, MANY = 2500 };        /* looks, a few seconds; sets */
    LsArena *arena = ls_arena_new();
    const LsFamily *pruned = ls_family_pruned(f);
    Optima op[2] = {{tc, tc != NULL, -1, 0}, {mc, mc != NULL, -1, 0}};
    Sweep w = {.pool = pool, .f = f, .x = ls_exact_new(arena, f, fam, 0), .arena = arena,
               .rows = {.arena = arena, .nword = f->nword},
               .o = {.budget = widest(f, fam), .unit = unit_of(f, fam),
                     .most_looks = looks ? looks : LOOKS}};
    for (uint32_t i = 0; i < pruned->n; i++)
        add_row(&w.rows, pruned->low + (size_t)i * f->nword);
    sweep_optima(&w, op, fam->n > MANY);
    *unknown = w.unknown;
    const LsFamily *used = ls_family_of(f, w.rows.set, w.rows.n);
    ls_arena_free(arena);
    return used;
}
