/* scheduler/strategies/optimal_front.c -- the Pareto front of peak and cost of small graphs, by
 * searches from their ends.
 *
 * The budgets searched come from the graph, not from the budget asked for, so plans stay monotone.
 * The candidates have their own strategy name, so that they do not displace others of equal figures
 * whose live ranges may pack better. */
#include <math.h>

#include "scheduler/algorithms/tasks.h"
#include "scheduler/candidates/peak_targets.h"
#include "scheduler/state_search/beam_search.h"
#include "scheduler/state_search/best_first_search.h"
#include "scheduler/state_search/state_table.h"
#include "scheduler/strategies/published_strategies.h"

typedef struct Hunt {
    LsCandidates *pool;
    LsArena *arena;             /* of the graph and the schedules */
    const LsBoundGraph *b;
    uint32_t left, each;        /* limits of states: in all, per search */
    int64_t *closed; uint32_t nclosed, closed_room; /* peaks whose gap to the next candidate below
                                                     * is done */
} Hunt;

static Hunt start(LsCandidates *pool, uint32_t effort, uint32_t each, uint32_t in_all)
{
    LsArena *arena = ls_arena_new();
    uint32_t part = effort == 0 || effort > 100 ? 100 : effort;
    return (Hunt){.pool = pool, .arena = arena, .b = ls_bound_graph_new(arena, pool->prob),
                  .left = in_all * part, .each = each * part};
}

/* Offers the optimum (as in ls_optimum_plan) if it costs less than all known candidates. Returns
 * whether the search ended. */
static bool offer(Hunt *h, int64_t budget)
{
    LsSeq seq;
    const LsCand *best = budget > 0 ? ls_candidates_within(h->pool, budget) : NULL;
    double enough = best ? best->cost * (1 - 1e-12) : INFINITY;
    uint32_t most = h->left < h->each ? h->left : h->each;
    LsOptimum o = ls_optimum_plan(h->arena, h->b, budget, enough, most, &seq);
    uint64_t states = ls_tails_count(o.states, o.work);
    h->left -= states < h->left ? (uint32_t)states : h->left;
    if (o.exact && o.value < INFINITY)
        ls_candidates_offer(h->pool, &seq, "auto-all");
    return o.exact || o.value >= enough;
}

static void close_below(Hunt *h, int64_t peak)
{
    h->closed = ls_arena_grow(h->arena, h->closed, h->nclosed, h->nclosed + 1u, sizeof *h->closed,
                              &h->closed_room);
    h->closed[h->nclosed++] = peak;
}

/* Returns the peak of the candidate before the largest rise of cost on the front; 0: all gaps are
 * closed. */
static int64_t widest_gap(const Hunt *h)
{
    int64_t least = INT64_MAX, widest = 0;
    double cost = 0, step = 0;
    for (uint32_t k = 0; k < h->pool->n; k++) {
        const LsCand *c = &h->pool->cand[k];
        bool closed = false;
        if (c->peak >= least)
            continue;
        for (uint32_t j = 0; j < h->nclosed; j++)
            closed |= h->closed[j] == least;
        if (least < INT64_MAX && !closed && c->cost - cost > step) {
            step = c->cost - cost;
            widest = least;
        }
        least = c->peak;
        cost = c->cost;
    }
    return widest;
}

/* Searches just below the candidates before the largest rises of cost, until the states run out. */
static void fill_gaps(Hunt *h)
{
    enum { PATIENCE = 2 };
    int failures = 0;
    for (int64_t peak; failures < PATIENCE && h->left > 0 && (peak = widest_gap(h)) > 0;) {
        failures += !offer(h, peak - 1);
        close_below(h, peak);
    }
}

void ls_strategy_optima(LsCandidates *pool, uint32_t effort)
{
    enum { NODES = 72, EACH = 1000, IN_ALL = 6000 };   /* states per percent of effort */
    if (pool->prob->n == 0 || pool->prob->n > NODES || pool->n == 0)
        return;
    Hunt h = start(pool, effort, EACH, IN_ALL);
    offer(&h, 0);
    offer(&h, INT64_MAX);
    fill_gaps(&h);
    ls_arena_free(h.arena);
}

/* Returns whether much may be gained at the target: annealing already finds the cheap
 * candidates. */
static bool is_dear(const Hunt *h, int64_t target)
{
    const double little = 0.03;     /* fraction of a step */
    const LsCand *best = ls_candidates_within(h->pool, target);
    return best == NULL || best->cost > h->pool->least_cost * (1 + little);
}

/* Removes the targets where little can be gained, and those just below another target. */
static void keep_dear(const Hunt *h, LsTargets *t)
{
    const double near = 0.985;
    uint32_t n = 0;
    for (uint32_t k = 0; k < t->n; k++)
        if (is_dear(h, t->bytes[k])
            && (n == 0 || (double)t->bytes[k] < near * (double)t->bytes[n - 1]))
            t->bytes[n++] = t->bytes[k];
    t->n = n;
}

static uint32_t width_of(const Hunt *h, uint32_t searches)
{
    enum { LEAST = 8, MOST = 1500 };
    uint32_t width = h->left / (searches * h->pool->prob->n);
    return width < LEAST ? LEAST : width > MOST ? MOST : width;
}

/* Beam searches for one target, with rising prices until one finds a schedule. Where memory is too
 * tight for one beam, a beam with a higher price per byte may get through. */
typedef struct Aim {
    const LsBoundGraph *b;
    LsArena *arena;             /* of seq */
    LsBeamOptions o;            /* without the price */
    uint32_t prices;            /* number of prices to try */
    bool known, found;          /* a schedule for the target was known; one was found now */
    LsSeq seq;
    uint64_t states;
} Aim;

static void aim(void *aims, uint32_t k)
{
    static const double price[] = {0.15, 0.6, 2.4};
    Aim *a = (Aim *)aims + k;
    for (size_t j = 0; j < a->prices && !a->found && (j == 0 || !a->known); j++) {
        a->o.price = price[j];
        LsBeamResult r = ls_beam(a->arena, a->b, &a->o, &a->seq);
        a->states += r.states;
        a->found = r.cost < INFINITY;
    }
}

/* Searches all targets in parallel. Returns how many of the last targets, in a row, have no
 * candidate. */
static uint32_t offer_beams(Hunt *h, const int64_t *target, uint32_t n, uint32_t width,
                            uint32_t prices)
{
    uint32_t failures = 0;
    Aim *all = ls_arena_alloc(h->arena, n + 1u, sizeof *all);
    for (uint32_t k = 0; k < n; k++) {
        const LsCand *best = ls_candidates_within(h->pool, target[k]);
        all[k] = (Aim){.b = h->b, .arena = ls_arena_new(), .prices = prices, .known = best != NULL,
                       .o = {.budget = target[k], .width = width,
                             .enough = best ? best->cost : INFINITY}};
    }
    ls_side_by_side(n, aim, all);
    for (uint32_t k = 0; k < n; k++) {
        h->left -= all[k].states < h->left ? (uint32_t)all[k].states : h->left;
        if (all[k].found)
            ls_candidates_offer(h->pool, &all[k].seq, "auto-all");
        failures = all[k].known || all[k].found ? 0 : failures + 1;
        ls_arena_free(all[k].arena);
    }
    return failures;
}

/* Runs narrow beams for all targets: their results also help later searches. */
static void offer_narrow(Hunt h, const LsTargets *t)
{
    offer_beams(&h, t->bytes, t->n, width_of(&h, t->n), 1);
}

/* Runs wide beams from the highest target down. A search may take an eighth of the states left. */
static void offer_wide(Hunt h, const LsTargets *t)
{
    enum { SHARES = 8, ABREAST = 4, PATIENCE = 2, PRICES = 3 };
    for (uint32_t k = 0, failures = 0; k < t->n && failures < PATIENCE; k += ABREAST) {
        uint32_t n = t->n - k < ABREAST ? t->n - k : ABREAST;
        failures = offer_beams(&h, t->bytes + k, n, width_of(&h, SHARES), PRICES);
    }
}

void ls_strategy_beam(LsCandidates *pool, int64_t store_all, uint32_t effort)
{
    enum { NODES = 200, IN_ALL = 6000 };            /* states per percent of effort, for narrow and
                                                     * for wide beams */
    if (pool->prob->n == 0 || pool->prob->n > NODES || pool->n == 0)
        return;
    Hunt h = start(pool, effort, 0, IN_ALL);
    LsTargets t = ls_targets(h.arena, pool->cand[0].peak, store_all, true);
    offer_narrow(h, &t);
    keep_dear(&h, &t);
    offer_wide(h, &t);
    ls_arena_free(h.arena);
}
