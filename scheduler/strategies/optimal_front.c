/* scheduler/strategies/optimal_front.c -- the front of peak and cost of small graphs, by searches from their ends.
 *
 * The budgets that are searched come from the graph, not from what is asked, so plans stay
 * monotone. The candidates have a name of their own: they must not drive out others of equal
 * figures, whose lives may be easier to pack. */
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
    uint32_t left, each;        /* states to try: in all, in one search */
    int64_t *closed; uint32_t nclosed, closed_room; /* peaks below which nothing is worth trying
                                                     * up to the next candidate */
} Hunt;

static Hunt start(LsCandidates *pool, uint32_t effort, uint32_t each, uint32_t in_all)
{
    LsArena *arena = ls_arena_new();
    uint32_t part = effort == 0 || effort > 100 ? 100 : effort;
    return (Hunt){.pool = pool, .arena = arena, .b = ls_bound_graph_new(arena, pool->prob),
                  .left = in_all * part, .each = each * part};
}

/* Offers the optimum (as ls_optimum_plan) if nothing that is known costs as little; whether the
 * search ended. */
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

/* The peak below which the next candidate costs most more than the one that has it; 0: all such
 * are closed. */
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

/* Looks just below the candidates where most is to be gained, until the states run out. */
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
    enum { NODES = 72, EACH = 1000, IN_ALL = 6000 };   /* states: for a percent of effort */
    if (pool->prob->n == 0 || pool->prob->n > NODES || pool->n == 0)
        return;
    Hunt h = start(pool, effort, EACH, IN_ALL);
    offer(&h, 0);
    offer(&h, INT64_MAX);
    fill_gaps(&h);
    ls_arena_free(h.arena);
}

/* Whether there may be much to gain at the target: the annealing finds what is cheap. */
static bool is_dear(const Hunt *h, int64_t target)
{
    const double little = 0.03;     /* of a step */
    const LsCand *best = ls_candidates_within(h->pool, target);
    return best == NULL || best->cost > h->pool->prob->needed_cost * (1 + little);
}

/* Takes out the targets where little is to be gained, and those just below another. */
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

/* Beams for one target: each of other prices until there is a schedule. Where memory is too tight
 * for a beam, one that minds bytes more may still come through. */
typedef struct Aim {
    const LsBoundGraph *b;
    LsArena *arena;             /* of seq */
    LsBeamOptions o;            /* but for the price */
    uint32_t prices;            /* to try */
    bool known, found;          /* a schedule for the target before; another now */
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

/* All targets side by side; how many of the last ones, in a row, there is no candidate for. */
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

/* Narrow beams for all targets: what each finds also helps where others search on. */
static void offer_narrow(Hunt h, const LsTargets *t)
{
    offer_beams(&h, t->bytes, t->n, width_of(&h, t->n), 1);
}

/* Wide ones from above where much may be gained; a search may take an eighth of what is left. */
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
    enum { NODES = 200, IN_ALL = 6000 };            /* states: for a percent of effort, each way */
    if (pool->prob->n == 0 || pool->prob->n > NODES || pool->n == 0)
        return;
    Hunt h = start(pool, effort, 0, IN_ALL);
    LsTargets t = ls_targets(h.arena, pool->cand[0].peak, store_all, true);
    offer_narrow(h, &t);
    keep_dear(&h, &t);
    offer_wide(h, &t);
    ls_arena_free(h.arena);
}
