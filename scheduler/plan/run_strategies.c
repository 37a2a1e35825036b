/* scheduler/plan/run_strategies.c -- see the header. */
#include "scheduler/plan/run_strategies.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "scheduler/algorithms/tasks.h"
#include "scheduler/graph/fusion_choice.h"
#include "scheduler/strategies/published_strategies.h"

/* A search for candidates on a thread of its own. */
typedef struct Beside {
    LsTask *task;
    LsCandidates *pool;         /* NULL: not started, or already joined */
} Beside;

typedef struct ByBlocks { Beside beside; const LsProb *p; } ByBlocks;

/* Number of searches for the least memory, and most nodes for them. More searches find little more,
 * and processors are few. */
enum { LEASTS = 2, LEASTS_MOST = 3000 };

typedef struct Least { Beside beside; LsLimit limit; uint32_t turn; } Least;

typedef struct Optima {         /* of the exact DP */
    Beside beside;
    LsArena *arena;             /* for all that is made from f */
    LsForward f;
    const LsFamily *all, *used;             /* used: set when joined */
    const char *tc, *mc;
    uint64_t looks;             /* for each optimum; 0: no limit */
    uint32_t unknown;           /* set when joined */
} Optima;

typedef struct Fill {
    LsArena *arena, *scratch;
    const LsPlanOptions *o;
    LsCandidates *pool;
    int64_t store_all;
    Optima optima;
    ByBlocks by_blocks[2];
    Least least[LEASTS];
    bool approx;                /* the sweep of the pruned family was made */
    LsFilled out;
} Fill;

static bool asked(const Fill *z, const char *part)
{
    return z->o->compare || ls_strategy_counts(z->o->strategy ? z->o->strategy : "auto", part);
}

/* Returns the strategy's name if it is asked for, else NULL. */
static const char *wanted(const Fill *z, const char *name) { return asked(z, name) ? name : NULL; }

/* Returns whether the strategy is asked for by its own name. */
static bool is_named(const Fill *z, const char *name)
{
    return z->o->strategy != NULL && strncmp(z->o->strategy, name, strlen(name)) == 0;
}

/* Returns the plan time as a multiple of the usual. The limits of the DPs follow from it and from
 * counts, not from a clock, so plans are the same everywhere. */
static double ampleness(const Fill *z)
{
    enum { MOST = 16 };         /* so that an endless plan time does not mean hours */
    double more = z->o->seconds / LS_USUAL_SECONDS;
    return more < 1 ? 1 : more < MOST ? more : MOST;
}

/* Scales n, the lower sets that a DP handles in about two seconds, to the plan time: its work grows
 * with the square of n. */
static uint32_t with_time(const Fill *z, uint32_t n)
{
    return (uint32_t)(n * sqrt(ampleness(z)));
}

/* For so many lower sets there is always time for fine sweeps and for the optima. */
enum { MOST_FOR_OPTIMA = 300 };

static const char *const too_many = ", too many for some of the optima";

/* The families of the DPs: all lower sets, or the pruned family if these are too many. Families
 * that no DP has time for are not made. */
typedef struct Families {
    bool approx, exact;         /* run */
    bool late;                  /* ... after the search, only for their own rows */
    uint32_t npruned, most;     /* sets of the pruned family; most sets of `all` */
    const LsFamily *pruned, *all;
} Families;

/* ---- beside ---- */

/* Starts a search from the n cheapest candidates. */
static void start_beside(Fill *z, Beside *b, uint32_t n, void (*find)(void *), void *what)
{
    b->pool = ls_candidates_beside(z->pool, n);
    b->task = ls_task_start(find, what);
}

/* Waits for the search, if it was started, and takes over its candidates. */
static void join_beside(Fill *z, Beside *b)
{
    if (b->pool == NULL)
        return;
    ls_task_wait(b->task);
    ls_candidates_join(z->pool, b->pool);
    b->pool = NULL;
}

static void find_by_blocks(void *by_blocks)
{
    ByBlocks *b = by_blocks;
    ls_strategy_hierarchy(b->beside.pool, b->p);
}

/* p: the pool's problem or a variant of it. */
static void start_by_blocks(Fill *z, ByBlocks *b, const LsProb *p)
{
    b->p = p;
    start_beside(z, &b->beside, 1, find_by_blocks, b);
}

static void find_optima(void *optima)
{
    Optima *o = optima;
    o->f.arena = o->arena;
    o->used = ls_strategy_exact(o->beside.pool, &o->f, o->all, o->tc, o->mc, o->looks,
                                &o->unknown);
}

static void start_optima(Fill *z, const LsForward *f, const LsFamily *all, uint64_t looks)
{
    z->optima = (Optima){.arena = ls_arena_new(), .f = *f, .all = all, .looks = looks,
                         .tc = wanted(z, "exact-tc"), .mc = wanted(z, "exact-mc")};
    start_beside(z, &z->optima.beside, 1, find_optima, &z->optima);
}

/* ---- */

/* lacks: the remark on optima that were not found. */
static const char *exact_note(const Fill *z, const Families *fam, const char *lacks)
{
    if (fam->all == NULL)
        return ls_arena_printf(z->arena, "more than %" PRIu32 " lower sets: the pruned family of %"
                               PRIu32 " instead", fam->most, fam->npruned);
    return ls_arena_printf(z->arena, "%" PRIu32 " lower sets%s", fam->all->n, lacks);
}

static void run_approx(Fill *z, const LsForward *f, const LsFamily *pruned)
{
    const char *tc = wanted(z, "approx-tc"), *mc = wanted(z, "approx-mc");
    bool named = is_named(z, "approx");
    ls_strategy_dp(z->pool, f, pruned, tc, mc,
                   named || pruned->n <= with_time(z, MOST_FOR_OPTIMA));
    z->approx = tc != NULL && mc != NULL && !named;
}

/* Returns whether the optima come before the search, which then starts from them too. Else they
 * come after it, given more than the usual time. */
static bool finds_optima_first(const Fill *z, const Families *fam)
{
    return fam->all != NULL && (is_named(z, "exact") || fam->all->n <= MOST_FOR_OPTIMA);
}

static void begin_optima(Fill *z, const LsForward *f, const Families *fam)
{
    enum { LOOKS = 30000000 };
    if (finds_optima_first(z, fam))
        start_optima(z, f, fam->all, 0);
    else if (fam->all != NULL && fam->all->n <= with_time(z, MOST_FOR_OPTIMA))
        start_optima(z, f, fam->all, (uint64_t)(LOOKS * ampleness(z)));
}

/* Offers the optima and the results of a sweep over the family, or over a smaller one if that is
 * large. */
static void run_exact(Fill *z, const LsForward *f, const Families *fam)
{
    enum { MOST_FOR_SWEEP = 2500 };
    const char *tc = wanted(z, "exact-tc");
    const char *mc = wanted(z, "exact-mc");
    bool named = is_named(z, "exact");
    const char *lacks = "";     /* while the optima are searched, add_optima has the last word */
    const LsFamily *swept = fam->all ? fam->all : fam->pruned;
    if (finds_optima_first(z, fam)) {
        join_beside(z, &z->optima.beside);
        lacks = z->optima.unknown > 0 ? too_many : "";
        swept = fam->all->n > MOST_FOR_SWEEP ? z->optima.used : fam->all;
    }
    if (z->approx && !named && swept->n == fam->pruned->n) {    /* the same sweep was made */
        if (tc != NULL)
            ls_candidates_offer_as(z->pool, "approx-tc", tc);
        if (mc != NULL)
            ls_candidates_offer_as(z->pool, "approx-mc", mc);
    } else {
        ls_strategy_dp(z->pool, f, swept, tc, mc,
                       named || swept->n <= with_time(z, MOST_FOR_OPTIMA));
    }
    z->out.exact_note = exact_note(z, fam, lacks);
}

/* Adds, after the search, the optima that run_exact left out, given more than the usual time. */
static void add_optima(Fill *z, const Families *fam)
{
    if (fam->all == NULL || finds_optima_first(z, fam))
        return;
    bool tried = z->optima.beside.pool != NULL;
    join_beside(z, &z->optima.beside);
    z->out.exact_note = exact_note(z, fam, !tried ? ", --plan-time is too short for the optima"
                                         : z->optima.unknown > 0 ? too_many : "");
}

/* Most lower sets for the DPs, which examine all pairs: for a deep graph auto runs them only with
 * more time. */
enum { MOST_SETS = 600, MOST_TO_COMPARE = 2500 };

static bool has_time_for(Fill *z, uint32_t npruned, const char *name)
{
    uint32_t most = with_time(z, z->o->compare ? MOST_TO_COMPARE : MOST_SETS);
    if (npruned <= most || is_named(z, name))
        return true;
    z->out.left_out = ls_arena_printf(z->arena, "left out: %" PRIu32 " lower sets, and --plan-time "
                                   "is enough for %" PRIu32 "; ask for it with --strategy",
                                   npruned, most);
    return false;
}

static Families find_families(Fill *z, const LsForward *f)
{
    enum { MOST = 40000, MOST_FOR_AUTO = 2500 };
    Families fam = {.npruned = ls_family_pruned_size(f)};
    fam.approx = (asked(z, "approx-tc") || asked(z, "approx-mc"))
                 && has_time_for(z, fam.npruned, "approx");
    fam.exact = (asked(z, "exact-tc") || asked(z, "exact-mc"))
                && has_time_for(z, fam.npruned, "exact");
    fam.most = z->o->max_lower_sets ? z->o->max_lower_sets
               : is_named(z, "exact") ? MOST : with_time(z, MOST_FOR_AUTO);
    /* so that auto is the same with and without compare */
    fam.late = z->o->compare && z->o->strategy == NULL && fam.npruned > with_time(z, MOST_SETS);
    if (fam.approx || fam.exact)
        fam.pruned = ls_family_pruned(f);
    if (fam.exact)
        fam.all = ls_family_all(f, fam.most);
    return fam;
}

/* The variants of p that are split into blocks: with the cheapest kernels and, if that differs from
 * p, with kernels that write less. */
typedef struct Variants { const LsProb *cheap, *less; } Variants;

static Variants begin_seeds(Fill *z, const LsProb *p)
{
    Variants v = {ls_variant(z->scratch, p, 0), ls_variant(z->scratch, p, 0.25)};
    start_by_blocks(z, &z->by_blocks[0], v.cheap);
    if (v.cheap != p)
        start_by_blocks(z, &z->by_blocks[1], v.less);
    return v;
}

/* Offers the choices at the turn and by blocks. closed: the choice at the turn was already made for
 * p. */
static void offer_seeds(Fill *z, const LsProb *p, Variants v, bool closed)
{
    if (v.cheap != p || !closed)
        ls_strategy_closure(z->pool, v.cheap);
    join_beside(z, &z->by_blocks[0].beside);
    join_beside(z, &z->by_blocks[1].beside);
}

/* Searches for the fraction `part` of the time left, then polishes the results. */
static void search(Fill *z, LsLimit *limit, uint32_t effort, double part)
{
    LsLimit some = ls_limit_part(limit, effort, part);
    z->out.cut |= ls_strategy_auto(z->pool, z->store_all, &some);
    limit->work = some.work;
    z->out.cut |= ls_strategy_polish(z->pool, z->store_all, limit);
}

/* Returns a sum that changes whenever the candidates change. */
static double sum_of_all(const LsCandidates *pool)
{
    double sum = 0;
    for (uint32_t k = 0; k < pool->n; k++)
        sum += pool->cand[k].cost + (double)pool->cand[k].peak;
    return sum;
}

/* Returns the fraction of the usual time for roaming or for the search after it. Rough graphs leave
 * the rest to packing; without packing, roaming makes better use of it than the search. */
static double usual_part(const Fill *z, bool roams)
{
    if (!ls_candidates_rough(z->pool))
        return 1;
    return !z->pool->prob->unplaced ? 0.55 : roams ? 1 : 0.3;
}

/* Returns the seconds asked for, at most `part` of the usual. */
static double usual_seconds(const Fill *z, double part)
{
    double asked_for = z->o->seconds, most = part * LS_USUAL_SECONDS;
    return asked_for > 0 && asked_for < most ? asked_for : most;
}

static LsLimit least_limit(const Fill *z, double seconds, double part)
{
    LsLimit limit = ls_limit_start(z->o->effort, seconds);
    return ls_limit_part(&limit, limit.effort, part);
}

/* Searches for the least memory, for a fraction of `seconds`. */
static void run_least(Fill *z, double seconds)
{
    LsLimit limit = least_limit(z, seconds, 0.25);
    ls_strategy_least(z->pool, &limit, 0);
}

/* Lowers the least peak further, window by window. */
static void tighten(Fill *z)
{
    LsLimit limit = least_limit(z, usual_seconds(z, 1), 0.5);
    if (z->pool->has_turn && z->pool->prob->n <= LEASTS_MOST)
        ls_strategy_tighten(z->pool, &limit);
}

static void find_least(void *least)
{
    Least *l = least;
    ls_strategy_least(l->beside.pool, &l->limit, l->turn);
}

/* Starts the same searches on threads of their own from the present candidates, while the main
 * search goes on. Reaching the least is luck: several short searches find more than a long one. */
static void start_leasts(Fill *z)
{
    const double part = 0.9;
    if (!z->pool->has_turn || z->pool->prob->n > LEASTS_MOST)
        return;
    for (uint32_t k = 0; k < LEASTS; k++) {
        Least *l = &z->least[k];
        *l = (Least){.limit = least_limit(z, usual_seconds(z, 1), part), .turn = k + 1};
        start_beside(z, &l->beside, UINT32_MAX, find_least, l);
    }
}

static void join_leasts(Fill *z)
{
    for (uint32_t k = 0; k < LEASTS; k++)
        join_beside(z, &z->least[k].beside);
}

/* Uses time beyond the usual, unless the number of moves is given: rounds of ever more moves, until
 * several find nothing. These follow the usual search, so more time only adds candidates. */
static void search_on(Fill *z, uint32_t effort)
{
    enum { MOST = 10, PATIENCE = 3 };
    if (z->o->effort > 0 || ampleness(z) <= 1)
        return;
    LsLimit limit = ls_limit_start(0, z->o->seconds - LS_USUAL_SECONDS);
    uint32_t roaming = limit.effort;
    z->out.cut = false;                             /* the search continues where it was cut */
    for (int k = 0, failures = 0; k < MOST && failures < PATIENCE && !z->out.cut
                                  && limit.work < limit.most / 2; k++) {
        double before = sum_of_all(z->pool);
        limit.effort = roaming *= 2;
        ls_strategy_roam(z->pool, &limit, true);
        search(z, &limit, effort *= 2, 0.9);
        failures = sum_of_all(z->pool) != before ? 0 : failures + 1;
    }
    run_least(z, LS_USUAL_SECONDS * ampleness(z));
}

/* A given number of moves may use all the time; else the usual fraction. */
static LsLimit usual_limit(const Fill *z, bool roams)
{
    double usual = usual_seconds(z, usual_part(z, roams));
    return ls_limit_start(z->o->effort, z->o->effort == 0 ? usual : z->o->seconds);
}

/* Offers whole steps run twice, where the updates wait for all gradients. */
static void offer_step_again(Fill *z, const LsProb *p)
{
    uint32_t gate;
    const LsProb *open = ls_step_without_gate(z->scratch, p, &gate);
    if (open == NULL)
        return;
    LsPlanOptions o = *z->o;
    o.strategy = "auto";
    o.compare = false;
    LsCandidates *pool = ls_candidates_new(z->scratch, open);
    ls_candidates_fill(z->scratch, z->scratch, &o, pool, z->store_all);
    ls_strategy_step_again(z->pool, gate, pool);
    ls_candidates_free(pool);
}

/* The search starts from the best candidates and may miss good ones near others. So in small graphs
 * it first runs without the plans by blocks, then with them. */
static void run_auto(Fill *z, const LsProb *p, Variants v)
{
    enum { SMALL = 1500, FEW = 600, QUICK = 240, CYCLES = 3 };
    LsLimit limit = usual_limit(z, true);
    uint32_t effort = limit.effort;
    ls_strategy_roam(z->pool, &limit, false);
    ls_strategy_order(z->pool);
    ls_strategy_passes(z->pool, p);
    if (v.cheap != p)
        ls_strategy_passes(z->pool, v.cheap);
    ls_strategy_evict(z->pool, v.cheap);
    const bool waits = ls_waits_for_gradients(p);
    if (waits)
        ls_strategy_twice(z->pool);
    limit = usual_limit(z, false);                  /* roaming has its own limit */
    if (p->n < SMALL) {
        ls_strategy_closure(z->pool, p);
        if (p->n > QUICK) {                         /* smaller graphs are searched several times */
            start_leasts(z);
            effort = (uint32_t)(((uint64_t)effort * QUICK + p->n - 1) / p->n);
        }
        search(z, &limit, effort, 0.4);
    }
    offer_seeds(z, p, v, p->n < SMALL);
    ls_strategy_beam(z->pool, z->store_all, z->o->effort);
    if (p->n >= SMALL)
        limit = usual_limit(z, false);
    effort = p->n < SMALL ? (effort + 1) / 2 : effort;
    for (int k = p->n > QUICK ? 1 : CYCLES; k > 0; k--)
        search(z, &limit, effort, 0.9 / k);
    for (int k = 1; p->n > QUICK && k < CYCLES && limit.work < limit.most / 2; k++)
        search(z, &limit, effort, 0.9);             /* time is left */
    if (p->n <= FEW)                                /* in larger graphs it finds little so soon */
        run_least(z, usual_seconds(z, usual_part(z, false)));
    join_leasts(z);
    tighten(z);
    search_on(z, effort);
    if (waits)                                      /* these come after what they could distract */
        offer_step_again(z, p);
    else
        ls_strategy_twice(z->pool);
    ls_strategy_optima(z->pool, z->o->effort);
}

static void run_dps(Fill *z, const LsForward *f, const Families *fam)
{
    z->pool->aside = fam->late;
    if (fam->approx)
        run_approx(z, f, fam->pruned);
    if (fam->exact)
        run_exact(z, f, fam);
    z->pool->aside = false;
}

static void fill_pool(Fill *z, const LsProb *p)
{
    ls_strategy_none(z->pool);
    LsForward *f = ls_forward_new(z->pool->arena, p);
    if (f->n == 0)
        return;
    const Families fam = find_families(z, f);
    Variants v = {0};
    if (fam.exact && !fam.late)
        begin_optima(z, f, &fam);
    if (asked(z, "auto"))
        v = begin_seeds(z, p);
    if (asked(z, "chen"))
        ls_strategy_chen(z->pool, f);
    if (!fam.late)
        run_dps(z, f, &fam);
    if (asked(z, "auto"))
        run_auto(z, p, v);
    if (fam.late)
        run_dps(z, f, &fam);
    if (fam.exact)
        add_optima(z, &fam);
    if (z->optima.arena != NULL)
        ls_arena_free(z->optima.arena);
}

LsFilled ls_candidates_fill(LsArena *arena, LsArena *scratch, const LsPlanOptions *options,
                            LsCandidates *pool, int64_t store_all)
{
    Fill z = {.arena = arena, .scratch = scratch, .o = options, .pool = pool,
              .store_all = store_all};
    fill_pool(&z, pool->prob);
    return z.out;
}
