/* scheduler/strategies/auto_strategy.c -- the best of all strategies, repaired and improved by
 * simulated annealing for a ladder of targets.
 *
 * The targets do not depend on the budget, so plans stay monotone. Downwards, each target starts
 * from the result for the target above or from a candidate near it. Below the last target reached,
 * the peak is squeezed further. Upwards, each target starts from the best sequence so far. The
 * Pareto front of all sequences seen is kept. */
#include "scheduler/algorithms/tasks.h"
#include "scheduler/candidates/peak_targets.h"
#include "scheduler/local_search/annealing.h"
#include "scheduler/local_search/fill_headroom.h"
#include "scheduler/strategies/published_strategies.h"

enum { LANES = 4, MOST_NEAR = 10, MOST_STARTS = 20 };

typedef struct Search {
    LsCandidates *pool;
    LsAnneal a;
    LsAnneal lane[LANES];       /* for parallel starts; their fronts are empty in between */
    int64_t *rung; uint32_t nrung;          /* targets, falling */
    uint32_t starts;            /* random starts per target */
} Search;

/* ---- lanes ---- */

typedef struct Start { const LsSeq *seq; uint64_t rnd; } Start;

typedef struct Batch {
    Search *s;
    int64_t target;
    Start item[MOST_NEAR + MOST_STARTS];
    uint32_t n;
} Batch;

static void add_start(Batch *b, const LsSeq *seq)
{
    uint64_t seed = ls_moves_random(b->s->a.m, 1u << 31);
    b->item[b->n++] = (Start){seq, seed * UINT64_C(0x9e3779b97f4a7c15) | 1};
}

static void run_starts(void *batch, uint32_t k)
{
    const Batch *b = batch;
    LsAnneal *lane = &b->s->lane[k];
    for (uint32_t j = k; j < b->n; j += LANES) {
        lane->m->rnd = b->item[j].rnd;
        ls_anneal_attempt(lane, b->item[j].seq, b->target);
    }
}

/* Gives every lane the present temperature, weight and limit. */
static void open_lanes(Search *s)
{
    for (uint32_t k = 0; k < LANES; k++) {
        LsAnneal *lane = &s->lane[k];
        lane->weight = s->a.weight;
        lane->hot = s->a.hot;
        lane->limit = s->a.limit;
        lane->cut = s->a.cut;
    }
}

/* Takes over the results and the work of the lanes. */
static void close_lanes(Search *s)
{
    uint64_t before = s->a.limit.work;
    for (uint32_t k = 0; k < LANES; k++) {
        ls_front_move(&s->a.front, &s->lane[k].front);
        s->a.limit.work += s->lane[k].limit.work - before;
    }
    s->a.cut |= ls_limit_is_over(&s->a.limit);
}

/* Attempts all starts, each with its own random seed. */
static void run_batch(Batch *b)
{
    open_lanes(b->s);
    ls_side_by_side(b->n < LANES ? b->n : LANES, run_starts, b);
    close_lanes(b->s);
}

/* ---- */

/* Attempts the target from candidates near it, and from random ones. */
static void attempt_all(Search *s, int64_t target)
{
    static const double near[MOST_NEAR] = {1, 1.02, 1.04, 1.07, 1.1, 1.14, 1.2, 1.3, 1.5, 2};
    const LsCand *last = NULL;
    Batch b = {.s = s, .target = target};
    for (size_t j = 0; j < MOST_NEAR; j++) {
        int64_t peak = (int64_t)((double)target * near[j]);
        const LsCand *c = ls_candidates_within(s->pool, peak);
        if (c != NULL && c != last)
            add_start(&b, &c->seq);
        last = c;
    }
    run_batch(&b);
    b.n = 0;
    for (uint32_t k = 0; k < s->starts; k++) {
        uint32_t pick = ls_moves_random(s->a.m, s->pool->n + s->a.front.n);
        add_start(&b, pick < s->pool->n ? &s->pool->cand[pick].seq
                                        : &s->a.front.item[pick - s->pool->n].seq);
    }
    run_batch(&b);
}

/* Fills the headroom of the best sequence for a target, in large graphs, where annealing has few
 * moves per node. */
static void fill(Search *s, int64_t target)
{
    enum { LARGE = 1500 };
    LsAnneal *a = &s->a;
    const LsFrontItem *best = ls_front_best(&a->front, target);
    if (a->p->n < LARGE || best == NULL || a->cut)
        return;
    ls_anneal_load(a, &best->seq, target);
    ls_exchange(a);
}

/* Searches at the target from the best start; returns whether the target was reached. */
static bool descend(Search *s, int64_t target)
{
    LsAnneal *a = &s->a;
    attempt_all(s, target);
    const LsFrontItem *best = ls_front_best(&a->front, target);
    if (best == NULL && a->front.n > 0)
        best = ls_front_least(&a->front);
    if (best == NULL)
        return false;
    ls_anneal_load(a, &best->seq, target);
    ls_anneal_repair(a);
    ls_anneal_run(a);
    fill(s, target);
    return ls_front_best(&a->front, target) != NULL;
}

/* Lowers the least peak little by little, below the ladder. */
static void squeeze(Search *s)
{
    LsAnneal *a = &s->a;
    static const double part[] = {0.98, 0.99, 0.997};
    for (uint32_t k = 0, round = 0; k < sizeof part / sizeof *part && round < 40; round++) {
        const LsFrontItem *least = ls_front_least(&a->front);
        int64_t peak = least->peak;
        int64_t target = (int64_t)((double)peak * part[k]);
        ls_anneal_load(a, &least->seq, target);
        ls_anneal_repair(a);
        ls_anneal_run(a);
        if (a->cut)
            return;
        k += ls_front_least(&a->front)->peak >= peak;
    }
}

/* Anneals again at every target within reach, upwards, each from the best sequence so far. */
static void ascend(Search *s)
{
    LsAnneal *a = &s->a;
    for (uint32_t k = s->nrung; k-- > 0 && !a->cut;) {
        const LsFrontItem *best = ls_front_best(&a->front, s->rung[k]);
        if (best == NULL && (double)ls_front_least(&a->front)->peak * 0.93 < (double)s->rung[k])
            best = ls_front_least(&a->front);
        if (best == NULL)
            continue;
        ls_anneal_load(a, &best->seq, s->rung[k]);
        ls_anneal_run(a);
        fill(s, s->rung[k]);
    }
}

/* Restarts from the cheapest sequence and goes down with the same tape, unlike `descend`. */
static void descend_anew(Search *s)
{
    LsAnneal *a = &s->a;
    ls_anneal_load(a, &a->front.item[0].seq, s->rung[0]);
    for (uint32_t k = 0; k < s->nrung && !a->cut; k++) {
        a->m->target = s->rung[k];
        if ((double)ls_front_least(&a->front)->peak * 0.95 > (double)a->m->target)
            break;
        ls_anneal_repair(a);
        ls_anneal_run(a);
    }
}

static void find_rungs(Search *s, int64_t store_all)
{
    enum { FEW = 400 };                             /* nodes: so few leave time for many targets */
    LsTargets t = ls_targets(s->pool->arena, s->a.top, store_all, s->a.p->n <= FEW);
    s->rung = ls_arena_alloc(s->pool->arena, t.n + 1u, sizeof *s->rung);
    if (s->a.m->swaps)                              /* an alternative may beat plan "none" */
        s->rung[s->nrung++] = s->a.top;
    for (uint32_t k = 0; k < t.n; k++)
        s->rung[s->nrung++] = t.bytes[k];
}

static void improve(Search *s)
{
    enum { GIVE_UP = 3 };
    /* Rounds of low and high temperature, with low and high weight of the target. */
    static const double mood[][2] = {{1, 3}, {3, 10}, {3, 3}, {1, 10}, {1, 3}, {0.3, 10}};
    LsAnneal *a = &s->a;
    uint32_t failures = 0;
    ls_anneal_mood(a, mood[0][0], mood[0][1]);
    for (uint32_t k = 0; k < s->nrung && failures < GIVE_UP && !a->cut; k++)
        failures = descend(s, s->rung[k]) ? 0 : failures + 1;
    if (a->front.n == 0)
        return;
    squeeze(s);
    for (uint32_t k = 1; k < sizeof mood / sizeof *mood && !a->cut; k++) {
        ls_anneal_mood(a, mood[k][0], mood[k][1]);
        if (k % 2)
            ascend(s);
        else
            descend_anew(s);
    }
}

bool ls_strategy_auto(LsCandidates *pool, int64_t store_all, LsLimit *limit)
{
    const LsProb *p = pool->prob;
    if (pool->n == 0 || pool->cand[0].peak == 0)
        return false;
    LsArena *arena = ls_arena_new();
    int64_t top = pool->cand[0].peak;               /* the first candidate is the cheapest */
    Search s = {.pool = pool, .a = ls_anneal_new(arena, p, top, limit),
                .starts = 4000 / (p->n + 200)};
    for (uint32_t k = 0; k < LANES; k++)
        s.lane[k] = ls_anneal_new(arena, p, top, limit);
    find_rungs(&s, store_all);
    improve(&s);
    limit->work = s.a.limit.work;
    ls_anneal_offer(&s.a, pool);
    for (uint32_t k = 0; k < LANES; k++)
        ls_anneal_free(&s.lane[k]);
    ls_anneal_free(&s.a);
    ls_arena_free(arena);
    return s.a.cut;
}
