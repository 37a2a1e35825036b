/* scheduler/pipes/pipe_plan.c -- see the header.
 *
 * The planner knows the memory of one micro-batch, and the stage needs that of several: what a micro-batch keeps between
 * its phases counts once for each slot. So plans are made for a ladder of budgets, and each is laid out. Where the cheapest
 * plan does not fit, more ladders follow: with bytes that only exist when phase B begins, which make the planner spare what
 * is kept there, and with all that can be made again made again. */
#include "scheduler/pipes/pipe_plan.h"

#include "scheduler/plan/hint_plan.h"

#include <math.h>
#include <stdlib.h>

enum { RUNGS = 8, RUNG_PLANS = RUNGS + 1, LADDERS = 4, MOST = LADDERS * RUNG_PLANS };

typedef struct Ladder {
    LsArena *arena;
    const LsPipeCut *c;
    uint32_t stage;
    const LsPipeWish *wish;
    LsPipeGraph *g;             /* without the late phase */
    const LsHinted *hinted;     /* of the ladder that is climbed; NULL: there are no hints */
    LsPlanner *planner;         /* likewise, without hints */
    const char *strategy;
    LsPlan plan[MOST]; uint32_t n;
} Ladder;

/* Asks for a plan of one micro-batch within so many bytes; 0: any. */
static bool ask(Ladder *x, int64_t budget, bool least, LsPlanReport *report)
{
    LsPlanOptions o = x->wish->plan;
    LsPlan *to = &x->plan[x->n];
    o.budget = budget;
    o.least = least;
    const bool ok = x->hinted != NULL ? ls_hints_plan(x->arena, x->hinted, &o, to, report)
        : least                       ? ls_planner_least(x->planner, x->strategy, to, report)
                                      : ls_planner_ask(x->planner, x->strategy, budget, to, report);
    x->n += ok;
    return ok;
}

/* The cheapest plan and, unless `one`, those of smaller budgets. */
static void climb(Ladder *x, bool one)
{
    LsPlanReport report;
    const uint32_t first = x->n;
    if (!ask(x, 0, false, &report) || one)
        return;
    const int64_t most = x->plan[first].arena;
    if (!ask(x, 0, true, &report))
        return;
    const int64_t least = x->plan[first + 1].arena;
    for (int k = 1; k < RUNGS && least < most; k++)
        ask(x, least + (most - least) * k / RUNGS, false, &report);
}

static int by_cost(const void *a, const void *b)
{
    const LsPlan *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return x->arena < y->arena ? -1 : x->arena > y->arena;
}

static bool is_same(const LsPlan *a, const LsPlan *b) { return a->cost == b->cost && a->arena == b->arena && a->nstep == b->nstep; }

/* Takes the cheapest plan whose layout fits `most` bytes (0: any), among plans of equal cost the smallest layout; or with
 * `least` the smallest of all. */
static bool choose(Ladder *x, const LsProb *p, int64_t most, bool least, LsPipePlan *out)
{
    bool found = false;
    qsort(x->plan, x->n, sizeof *x->plan, by_cost);
    for (uint32_t k = 0; k < x->n; k++) {
        LsPipeLayout l;
        if (found && !least && ls_dearer(x->plan[k].cost, out->layout.plan.cost))
            break;
        if (k > 0 && is_same(&x->plan[k], &x->plan[k - 1]))
            continue;
        const int64_t below = found ? out->layout.arena - 1 : least ? 0 : most;
        if (ls_pipe_layout(x->arena, x->c, x->stage, &out->graph, p, &x->plan[k], x->wish->slots, below, &l)) {
            out->least = l.arena;
            out->layout = l;
            found = true;
        }
    }
    return found;
}

static bool plan_none(const Ladder *x, const LsProb *p, LsPipePlan *out)
{
    LsPlan none;
    LsPlanReport report;
    LsPipeLayout l;
    const LsPlanOptions o = {.strategy = "none", .unproven = true};
    if (!ls_plan(x->arena, &x->g->dag, &o, &none, &report))
        return false;
    ls_pipe_layout(x->arena, x->c, x->stage, &out->graph, p, &none, x->wish->slots, 0, &l);
    out->none_arena = l.arena;
    return true;
}

static bool has_hints(const LsHints *h) { return h->nkeep > 0 || h->nforget > 0 || h->recompute != LS_RECOMPUTE_AUTO; }

/* Sets the bytes that exist while phase B begins. */
static void set_extra(Ladder *x, int64_t extra) { x->g->dag.node[x->g->begin[LS_PHASE_B]].workspace = extra; }

/* Adds a ladder of plans that keep to the hints. False, with a sentence: they have no meaning here. */
static bool climb_hinted(Ladder *x, int64_t extra, const LsHints *hints, char *why, size_t room)
{
    LsHinted hinted;
    set_extra(x, extra);
    const bool ok = ls_hints_apply(x->arena, &x->g->dag, hints, &hinted, why, room);
    x->hinted = &hinted;
    if (ok)
        climb(x, false);
    x->hinted = NULL;
    set_extra(x, 0);
    return ok;
}

static void climb_freely(Ladder *x, int64_t extra, bool one)
{
    set_extra(x, extra);
    x->planner = ls_planner_new(x->arena, &x->g->dag, &x->wish->plan);
    if (x->planner != NULL) {
        climb(x, one);
        ls_planner_free(x->planner);
    }
    set_extra(x, 0);
}

/* All ladders, until the cheapest plan fits. */
static bool plan_freely(Ladder *x, const LsProb *p, LsPipePlan *out)
{
    const LsHints all = {.recompute = LS_RECOMPUTE_ALL};
    const LsPipeWish *w = x->wish;
    const bool any = out->budget <= 0 && !w->least;
    char why[256];
    climb_freely(x, 0, any);
    bool found = choose(x, p, out->budget, w->least, out);
    if (any || w->slots == 1 || (found && !w->least && !ls_dearer(out->layout.plan.cost, x->plan[0].cost)))
        return found;
    const int64_t whole = out->none_arena / w->slots;
    climb_freely(x, whole / 2, false);
    climb_freely(x, whole, false);
    if (w->plan.strategy == NULL)
        climb_hinted(x, whole, &all, why, sizeof why);
    return choose(x, p, out->budget, w->least, out);
}

bool ls_pipe_plan(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeWish *wish, LsPipePlan *out, char *why,
                   size_t room)
{
    LsPipeGraph g;
    *out = (LsPipePlan){.budget = wish->budget};
    why[0] = '\0';
    ls_pipe_graph(arena, c, stage, false, &g);
    ls_pipe_graph(arena, c, stage, true, &out->graph);
    const LsProb *p = ls_prob_new(arena, &out->graph.dag, !wish->plan.no_inplace);
    Ladder *x = ls_arena_alloc(arena, 1, sizeof *x);
    *x = (Ladder){.arena = arena, .c = c, .stage = stage, .wish = wish, .g = &g,
                  .strategy = wish->plan.strategy != NULL ? wish->plan.strategy : "auto"};
    if (!plan_none(x, p, out))
        return false;
    if (wish->percent > 0)
        out->budget = (int64_t)floor((double)out->none_arena * wish->percent / 100);
    if (has_hints(&wish->hints)
        && (!climb_hinted(x, 0, &wish->hints, why, room)
            || (wish->slots > 1 && !climb_hinted(x, out->none_arena / wish->slots, &wish->hints, why, room))))
        return false;
    /* Without a budget, all that can be made again is, for the sake of memory. */
    const bool least = wish->least || (wish->hints.recompute == LS_RECOMPUTE_ALL && out->budget <= 0);
    const bool found = has_hints(&wish->hints) ? choose(x, p, out->budget, least, out) : plan_freely(x, p, out);
    if (!found)
        choose(x, p, 0, true, out);
    return found;
}
