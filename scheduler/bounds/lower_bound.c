/* scheduler/bounds/lower_bound.c -- chooses separators, searches their prices, and rounds
 * safely. */
#include "scheduler/bounds/lower_bound.h"

#include <math.h>
#include <string.h>

#include "scheduler/bounds/bound_branching.h"
#include "scheduler/bounds/least_peak.h"
#include "scheduler/bounds/separators.h"
#include "scheduler/state_search/best_first_search.h"

/* A proof by cases: every schedule within `budget` or less spends at least `more` ns on
 * recomputation. */
typedef struct LsBoundStep { int64_t budget; double more; } LsBoundStep;

struct LsBounder {
    LsArena *arena;
    const LsProb *p;
    LsBoundOptions o;
    LsBoundGraph *b;
    LsBoundStep *step; uint32_t nstep, step_room;
    LsBoundDual **dual; uint32_t ndual, dual_room;  /* of all searches so far */
    int64_t least;
    bool least_searched;
    LsBound last; int64_t last_budget; double last_enough;  /* last_enough: the `enough` of that
                                                             * search */
};

static uint64_t percent(const LsBounder *c, uint64_t of)
{
    uint64_t part = c->o.effort == 0 ? 100 : c->o.effort > 1000 ? 1000 : c->o.effort;
    return of * part / 100;
}

static uint32_t default_separators(const LsBounder *c)
{
    uint32_t n = c->p->n + 1, sep = 5000 / n;
    if (c->o.nsep > 0)
        return c->o.nsep;
    sep = sep < 4 ? 4 : sep > 16 ? 16 : sep;
    return c->o.prove ? 3 * sep : sep;
}

static uint32_t default_cuts(const LsBounder *c)
{
    if (c->o.ncut > 0)
        return c->o.ncut;
    return c->o.prove ? 300 : c->p->n < 2000 ? 50 : 25;
}

/* Returns a lower bound on every live peak: the outputs at the end, each needed node while it
 * runs. */
static int64_t plain_least(const LsBoundGraph *b)
{
    int64_t least = 0;
    for (uint32_t t = 0; t < b->p->nt; t++)
        least += b->p->dag->tensor[t].output ? ls_bound_bytes(b->p, t) : 0;
    for (uint32_t v = 0; v < b->p->n; v++)
        least = b->needed[v] && b->own[v] > least ? b->own[v] : least;
    return least;
}

LsBounder *ls_bounder_new(const LsProb *p, const LsBoundOptions *o)
{
    LsArena *arena = ls_arena_new();
    LsBounder *c = ls_arena_alloc(arena, 1, sizeof *c);
    *c = (LsBounder){.arena = arena, .p = p, .o = *o, .last_budget = -1};
    c->b = ls_bound_graph_new(arena, p);
    c->least = plain_least(c->b);
    return c;
}

void ls_bounder_free(LsBounder *c)
{
    ls_arena_free(c->arena);
}

/* Makes and keeps the network for some separators. */
static LsBoundDual *lay_net(LsBounder *c, const uint32_t *sep, uint32_t n, const double *price)
{
    LsBoundNet *net = ls_bound_net_new(c->arena, c->b, sep, n);
    for (uint32_t k = 0; k < n; k++) {
        int64_t least = ls_bound_net_least(net, k);
        c->least = least > c->least ? least : c->least;
    }
    c->dual = ls_arena_grow(c->arena, c->dual, c->ndual, c->ndual + 1u, sizeof *c->dual,
                            &c->dual_room);
    LsBoundDual *d = ls_bound_dual_new(net);
    memcpy(d->price, price, n * sizeof *price);
    return c->dual[c->ndual++] = d;
}

/* Returns the base cost plus the proven recomputation, ns, rounded down; rounded up if costs are
 * multiples of least_cost. */
static double cost_of(const LsBounder *c, double more)
{
    const LsBoundGraph *b = c->b;
    if (more <= 0)
        more = 0;
    if (b->least_cost > 0)
        return b->base + ceil(more / b->least_cost) * b->least_cost;
    return (b->base + more) * (1 - 0x1p-52 * (c->p->n + 4.0));
}

/* Returns the recomputation, ns, that all lines and cases found so far prove for a budget, and the
 * node that proves most. INFINITY: nothing fits. */
static double proven(const LsBounder *c, int64_t budget, uint32_t *separator)
{
    double best = 0, most = 0;  /* by cases; by prices alone */
    for (uint32_t k = 0; k < c->nstep; k++)
        if (budget <= c->step[k].budget && c->step[k].more > best)
            best = c->step[k].more;
    for (uint32_t k = 0; k < c->ndual; k++) {
        const LsBoundDual *d = c->dual[k];
        for (uint32_t i = 0; i < d->nline; i++) {
            double grains = ls_bound_line_at(d->net, &d->line[i], budget);
            if (grains > (double)d->most)
                return INFINITY;
            if (grains * d->net->grain <= most)
                continue;
            most = grains * d->net->grain;
            uint32_t top = 0;
            for (uint32_t j = 1; j < d->net->nsep; j++)
                top = d->line[i].price[j] > d->line[i].price[top] ? j : top;
            *separator = c->b->path[d->net->sep[top]];
        }
    }
    return most > best ? most : best;
}

/* Returns the grains that prove that no schedule is cheaper than `enough`, after rounding as in
 * cost_of. */
static double grains_wanted(const LsBounder *c, const LsBoundNet *net, double enough)
{
    if (enough <= 0)
        return INFINITY;
    double more = (enough - c->b->base) / net->grain;
    return c->b->least_cost > 0 ? more - c->b->least_cost / net->grain + 8
                                : more * (1 - 1e-10) - 64;
}

static void keep_step(LsBounder *c, int64_t budget, double more)
{
    c->step = ls_arena_grow(c->arena, c->step, c->nstep, c->nstep + 1u, sizeof *c->step,
                            &c->step_room);
    c->step[c->nstep++] = (LsBoundStep){budget, more};
}

/* Searches prices in rounds, each at separators around those with prices in the last round.
 * *grains: the grains proven. Returns NULL if no place is crowded. */
static LsBoundDual *search_prices(LsBounder *c, int64_t budget, double enough, double *grains)
{
    uint32_t room = 2 * default_separators(c), rounds = c->o.prove ? 6 : c->p->n < 4000 ? 3 : 2;
    uint32_t *sep = ls_arena_alloc(c->arena, c->b->npath + room + 1u, sizeof *sep);
    double *price = ls_arena_alloc(c->arena, room + 1u, sizeof *price);
    uint32_t n = ls_separators_choose(c->b, budget, default_separators(c), sep);
    LsBoundDual *best = NULL;
    *grains = 0;
    for (uint32_t k = 0, step = c->b->npath / (2 * (n + 1)); n > 0 && k < rounds; k++, step /= 3) {
        LsBoundDual *d = lay_net(c, sep, n, price);
        double more = grains_wanted(c, d->net, enough);
        if (budget < c->least || more <= 0)
            return d;
        double x = ls_bound_dual_search(d, budget, more, default_cuts(c));
        if (best == NULL || x > *grains) {
            *grains = x;
            best = d;
        }
        if (x >= more || x > (double)d->most)
            break;
        n = ls_separators_refine(best, budget, step > 2 ? step : 2, room, sep, price);
    }
    return best;
}

/* Searches by prices, then by cases. Returns whether that proves that no schedule is cheaper than
 * `enough`. */
static bool search(LsBounder *c, int64_t budget, double enough)
{
    const uint64_t usual = 100000000, proving = 10000000000;    /* work of a tree, about ns */
    double grains;
    LsBoundDual *d = search_prices(c, budget, enough, &grains);
    if (d == NULL)
        return enough > 0 && enough <= c->b->base;
    double more = grains_wanted(c, d->net, enough);
    if (budget < c->least || more <= 0)
        return true;
    if (grains < more && grains <= (double)d->most) {
        uint64_t work = c->o.prove ? proving : usual / (1 + c->p->n / 200);
        grains = ls_bound_tree(d, budget, more, grains, percent(c, work));
        keep_step(c, budget, grains * d->net->grain);
    }
    c->last.nsep = d->net->nsep;
    c->last.ncut = d->cuts;
    return grains >= more || grains > (double)d->most;
}

static bool is_small(const LsBounder *c)
{
    return !c->o.relaxed && c->p->n <= (c->o.prove ? 200 : 64);
}

/* Limit of states; tiny graphs end long before. */
static uint32_t states(const LsBounder *c)
{
    return (uint32_t)percent(c, c->o.prove ? 1000000 : c->p->n <= 32 ? 50000 : 10000);
}

/* For small graphs, proves the optimum, or the bound reached when the states run out. */
static void search_all(LsBounder *c, int64_t budget, double enough)
{
    double slack = c->b->least_cost > 0 ? 0.5 * c->b->least_cost : 1e-10 * enough;
    if (!is_small(c))
        return;
    LsOptimum o =
        ls_optimum_cost(c->b, budget, enough > 0 ? enough - slack : INFINITY, states(c));
    if (o.value == INFINITY)
        keep_step(c, budget, INFINITY);
    else if (o.value > c->b->base)
        keep_step(c, budget, (o.value - c->b->base) * (1 - 0x1p-40));
}

static void raise_least(LsBounder *c, LsOptimum o)
{
    if (o.value > (double)c->least && o.value < INFINITY)
        c->least = (int64_t)o.value;
}

/* Bounds the least peak: exactly for small graphs, else by the last node of the path, then by the
 * largest tensors. */
static void search_least(LsBounder *c)
{
    enum { USUAL = 60000, PROVING = 2000000 };      /* states */
    LsOptimum o = {0};
    c->least_searched = true;
    if (is_small(c))
        o = ls_optimum_peak(c->b, c->least, states(c));
    raise_least(c, o);
    if (o.exact || o.value == INFINITY || c->b->npath == 0)
        return;
    raise_least(c, ls_optimum_peak_of(c->b, c->b->path[c->b->npath - 1], c->least,
                                      states(c) / (1 + c->p->n / 64)));
    c->least = ls_least_peak(c->b, c->least,
                             (uint32_t)percent(c, c->o.prove ? PROVING : USUAL));
}

LsBound ls_bounder_at(LsBounder *c, int64_t budget, double enough)
{
    if (c->last_budget == budget && (c->last.cost < c->last_enough || enough <= c->last_enough))
        return c->last;
    c->last_budget = budget;
    c->last_enough = enough > 0 ? enough : INFINITY;
    c->last = (LsBound){.separator = LS_NO_ID};
    double more = 0;
    if (budget > 0 && !c->least_searched)
        search_least(c);
    if (budget > 0 && budget >= c->least) {
        if (!search(c, budget, enough))
            search_all(c, budget, enough);
        more = proven(c, budget, &c->last.separator);
    }
    c->last.infeasible = more == INFINITY || (budget > 0 && budget < c->least);
    if (more == INFINITY && budget >= c->least)
        c->least = budget + 1;
    c->last.cost = cost_of(c, c->last.infeasible ? 0 : more);
    c->last.least = c->least;
    return c->last;
}

void ls_bounder_curve(LsBounder *c, const int64_t *budget, uint32_t n, double *cost)
{
    enum { SEARCHES = 12 };
    uint32_t step = (n + SEARCHES - 1) / SEARCHES;
    for (uint32_t k = 0; k < n; k++)
        if (k % step == 0 || k + 1 == n)
            ls_bounder_at(c, budget[k], 0);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t separator;
        bool fits = budget[k] <= 0 || budget[k] >= c->least;
        double more = fits && budget[k] > 0 ? proven(c, budget[k], &separator) : 0;
        cost[k] = fits && more < INFINITY ? cost_of(c, more) : INFINITY;
    }
}

double ls_bound_least_cost(const LsProb *p)
{
    return ls_bound(p, 0, &(LsBoundOptions){.relaxed = true}).cost;
}

LsBound ls_bound(const LsProb *p, int64_t budget, const LsBoundOptions *o)
{
    LsBounder *c = ls_bounder_new(p, o);
    LsBound r = ls_bounder_at(c, budget, 0);
    ls_bounder_free(c);
    return r;
}
