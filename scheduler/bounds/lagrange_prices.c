/* scheduler/bounds/lagrange_prices.c -- the level method (Lemarechal, Nemirovskii, Nesterov 1995).
 *
 * The bound is a concave function of the prices, and every solution found gives a linear upper
 * limit on it. The next prices are the nearest to the best so far where no limit is below a level
 * between the best bound and the hoped-for bound. If there are no such prices, the hope is lowered
 * to the level. */
#include "scheduler/algorithms/min_norm_point.h"
#include "scheduler/bounds/lagrange_prices.h"

#include <math.h>
#include <string.h>

enum { SOLUTIONS = 48 };

LsBoundDual *ls_bound_dual_new(LsBoundNet *net)
{
    LsArena *arena = net->b->arena;
    LsBoundDual *d = ls_arena_alloc(arena, 1, sizeof *d);
    *d = (LsBoundDual){.net = net};
    d->price = ls_arena_alloc(arena, net->nsep + 1u, sizeof *d->price);
    d->cost = ls_arena_alloc(arena, SOLUTIONS, sizeof *d->cost);
    d->weight = ls_arena_alloc(arena, SOLUTIONS, sizeof *d->weight);
    d->held = ls_arena_alloc(arena, SOLUTIONS * ((size_t)net->nsep + 1), sizeof *d->held);
    d->runs = ls_arena_alloc(arena, SOLUTIONS * ((size_t)net->nagain + 1), sizeof *d->runs);
    d->choice = ls_arena_alloc(arena, net->nagain + 1u, sizeof *d->choice);
    for (uint32_t x = 0; x < net->nagain; x++)
        d->most += net->again[x].cost;
    for (uint32_t x = 0; x < net->nstay; x++)
        d->most += net->stay[x].cost;
    return d;
}

void ls_bound_dual_choose(LsBoundDual *d, uint32_t x, int8_t choice)
{
    const LsBoundAgain *again = &d->net->again[x];
    d->nchoice += choice != 0;
    d->nchoice -= d->choice[x] != 0;
    d->choice[x] = choice;
    ls_flow_set_ends(&d->net->flow, again->vertex, choice > 0 ? LS_FLOW_ENDLESS : 0,
                     choice < 0 ? LS_FLOW_ENDLESS : again->cost);
}

typedef struct Search {
    LsBoundDual *d;
    int64_t budget;
    double cost_unit, byte_unit;
    double best, hope;          /* in units of cost_unit */
    double fit;                 /* least cost of a solution within the budget */
    double *center, *x;         /* prices in cost_unit / byte_unit */
    double *slope, *limit;      /* by solution */
    int64_t *held;
    double *price;
} Search;

static void keep_line(LsBoundDual *d, int64_t value, const double *price)
{
    LsArena *arena = d->net->b->arena;
    d->line = ls_arena_grow(arena, d->line, d->nline, d->nline + 1u, sizeof *d->line,
                            &d->line_room);
    LsBoundLine *line = &d->line[d->nline++];
    *line = (LsBoundLine){value, ls_arena_alloc(arena, d->net->nsep + 1u, sizeof *line->price)};
    memcpy(line->price, price, d->net->nsep * sizeof *price);
}

/* Returns the place for one more solution; a full list drops the solution whose limit is the
 * highest at the center. */
static uint32_t place(Search *s)
{
    LsBoundDual *d = s->d;
    uint32_t n = d->net->nsep, at = 0;
    double far = -1;
    if (d->nsolution < SOLUTIONS)
        return d->nsolution++;
    for (uint32_t i = 0; i < d->nsolution; i++) {
        double limit = s->limit[i];
        for (uint32_t k = 0; k < n; k++)
            limit += s->slope[i * n + k] * s->center[k];
        if (limit > far) {
            far = limit;
            at = i;
        }
    }
    return at;
}

/* Returns whether solution i agrees with the fixed choices. */
static bool agrees(const LsBoundDual *d, uint32_t i)
{
    const bool *runs = d->runs + (size_t)i * d->net->nagain;
    for (uint32_t x = 0; d->nchoice > 0 && x < d->net->nagain; x++)
        if (d->choice[x] != 0 && (d->choice[x] > 0) != runs[x])
            return false;
    return true;
}

static void set_limit(Search *s, uint32_t i)
{
    const double none = 1e6;    /* the solution gives no limit here */
    uint32_t n = s->d->net->nsep;
    bool counts = agrees(s->d, i);
    s->limit[i] = counts ? s->d->cost[i] / s->cost_unit : none;
    for (uint32_t k = 0; k < n; k++)
        s->slope[i * n + k] =
            counts ? (s->d->held[i * n + k] - (double)s->budget) / s->byte_unit : 0;
}

/* Solves the min-cut at prices s->x. */
static void probe(Search *s)
{
    LsBoundDual *d = s->d;
    uint32_t n = d->net->nsep, i = place(s);
    int64_t cost;
    for (uint32_t k = 0; k < n; k++)
        s->price[k] = s->x[k] * s->cost_unit / s->byte_unit;
    int64_t value = ls_bound_net_solve(d->net, s->price, &cost, s->held);
    d->cuts++;
    d->cost[i] = (double)cost;
    bool fits = true;
    for (uint32_t k = 0; k < n; k++) {
        d->held[i * n + k] = (double)(s->held[k] + d->net->fixed[k]);
        fits &= s->held[k] + d->net->fixed[k] <= s->budget;
    }
    for (uint32_t x = 0; x < d->net->nagain; x++)
        d->runs[(size_t)i * d->net->nagain + x] = d->net->side[d->net->again[x].vertex];
    set_limit(s, i);
    double proven =
        ls_bound_line_at(d->net, &(LsBoundLine){value, s->price}, s->budget) / s->cost_unit;
    if (proven > 0 && d->nchoice == 0)
        keep_line(d, value, s->price);
    if (proven > s->best) {
        s->best = proven;
        memcpy(s->center, s->x, n * sizeof *s->x);
    }
    if (fits && s->limit[i] < s->fit)
        s->fit = s->limit[i];
    s->hope = s->fit < s->hope ? s->fit : s->hope;
    if (s->hope < s->best)      /* the hope was lowered too far */
        s->hope = s->best + 0.1 * fabs(s->best);
}

/* Tries one price for all separators, raised while that proves more. */
static void start(Search *s, uint32_t ncut)
{
    LsBoundDual *d = s->d;
    uint32_t n = d->net->nsep;
    double price = 0.02 / n;
    memset(s->x, 0, n * sizeof *s->x);
    probe(s);
    for (uint32_t k = 0; k < 8 && d->cuts < ncut; k++, price *= 2.5) {
        double before = s->best;
        for (uint32_t j = 0; j < n; j++)
            s->x[j] = price;
        probe(s);
        if (k > 0 && s->best <= before)
            break;
    }
}

/* Sets s->x to the prices nearest to the best where no limit is below `level`; gap: the unit of
 * length. Returns false if there are none. */
static bool project(Search *s, LsArena *scratch, double level, double gap)
{
    LsBoundDual *d = s->d;
    uint32_t n = d->net->nsep, m = d->nsolution + n;
    double *row = ls_arena_alloc(scratch, (size_t)m * n + 1, sizeof *row);
    double *want = ls_arena_alloc(scratch, m + 1u, sizeof *want);
    double *weight = ls_arena_alloc(scratch, m + 1u, sizeof *weight);
    memcpy(row, s->slope, (size_t)d->nsolution * n * sizeof *row);
    for (uint32_t i = 0; i < d->nsolution; i++) {
        double at = s->limit[i];
        for (uint32_t k = 0; k < n; k++)
            at += s->slope[i * n + k] * s->center[k];
        want[i] = (level - at) / gap;
    }
    for (uint32_t k = 0; k < n; k++) {              /* no price below 0 */
        row[(d->nsolution + k) * n + k] = 1;
        want[d->nsolution + k] = -s->center[k] / gap;
    }
    bool some = ls_nearest_point(scratch, n, m, row, want, s->x, weight);
    for (uint32_t k = 0; k < n && some; k++)
        s->x[k] = fmax(0, s->center[k] + gap * s->x[k]);
    memcpy(d->weight, weight, d->nsolution * sizeof *weight);
    return some;
}

static void go_on(Search *s, double enough, uint32_t ncut)
{
    LsBoundDual *d = s->d;
    double most = (double)d->most / s->cost_unit;    /* 1, or 0 if nothing runs twice */
    for (int empty = 0; d->cuts < ncut && empty < 24;) {
        double gap = s->hope - s->best;
        if (gap < 1e-5 * most || s->best >= enough / s->cost_unit || s->best > most)
            return;
        double level = s->best + 0.4 * gap;
        LsArena *scratch = ls_arena_new();
        bool some = project(s, scratch, level, 0.4 * gap);
        ls_arena_free(scratch);
        if (some) {
            probe(s);
            empty = 0;
        } else {
            s->hope = level;
            empty++;
        }
    }
}

/* Finds the solutions that prove that no bound exceeds the best, with their weights. */
static void weigh(Search *s)
{
    LsArena *scratch = ls_arena_new();
    double gap = fmax(s->hope - s->best, 1e-6);
    for (int k = 0; k < 8 && project(s, scratch, s->best + gap, gap); k++)
        gap *= 4;
    ls_arena_free(scratch);
}

double ls_bound_dual_search(LsBoundDual *d, int64_t budget, double enough, uint32_t ncut)
{
    uint32_t n = d->net->nsep;
    LsArena *arena = ls_arena_new();
    Search s = {.d = d, .budget = budget, .best = -1, .byte_unit = (double)budget + 1};
    s.cost_unit = d->most > 0 ? (double)d->most : 1;
    s.hope = 1.0001;            /* a bound above 1: nothing fits */
    s.fit = INFINITY;
    s.center = ls_arena_alloc(arena, n + 1u, sizeof *s.center);
    s.x = ls_arena_alloc(arena, n + 1u, sizeof *s.x);
    s.price = ls_arena_alloc(arena, n + 1u, sizeof *s.price);
    s.held = ls_arena_alloc(arena, n + 1u, sizeof *s.held);
    s.limit = ls_arena_alloc(arena, SOLUTIONS, sizeof *s.limit);
    s.slope = ls_arena_alloc(arena, SOLUTIONS * ((size_t)n + 1), sizeof *s.slope);
    for (uint32_t i = 0; i < d->nsolution; i++)
        set_limit(&s, i);
    ncut += d->cuts;
    double sum = 0;
    for (uint32_t k = 0; k < n; k++) {
        s.x[k] = d->price[k] * s.byte_unit / s.cost_unit;
        sum += s.x[k];
    }
    if (sum > 0)
        probe(&s);
    else
        start(&s, ncut);
    go_on(&s, enough, ncut);
    weigh(&s);
    d->reached = s.fit - s.best < 1e-6;
    for (uint32_t k = 0; k < n; k++)
        d->price[k] = s.center[k] * s.cost_unit / s.byte_unit;
    double proven = s.best * s.cost_unit;
    ls_arena_free(arena);
    return proven;
}
