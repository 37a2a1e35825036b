/* scheduler/pipes/pipe_plan.c -- see the header.
 *
 * The planner knows the memory of one micro-batch, and the stage needs that of several: what a micro-batch keeps between
 * its phases counts once for each slot. So plans are made for a ladder of budgets, and each is laid out. */
#include "scheduler/pipes/pipe_plan.h"

#include "scheduler/plan/hint_plan.h"

#include <math.h>
#include <stdlib.h>

enum { RUNGS = 8, MOST = RUNGS + 3 };

typedef struct Ladder {
    LsArena *arena;
    const LsPipeCut *c;
    uint32_t stage;
    const LsPipeWish *wish;
    const LsHinted *hinted;     /* NULL: there are no hints */
    LsPlanner *planner;         /* without hints */
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

static int by_cost(const void *a, const void *b)
{
    const LsPlan *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return x->arena < y->arena ? -1 : x->arena > y->arena;
}

/* All plans that may be wanted, the cheapest first. */
static void climb(Ladder *x, bool any)
{
    LsPlanReport report;
    if (ask(x, 0, false, &report) && !any) {
        const int64_t most = x->plan[0].arena;
        if (ask(x, 0, true, &report)) {
            const int64_t least = x->plan[1].arena;
            for (int k = 1; k < RUNGS && least < most; k++)
                ask(x, least + (most - least) * k / RUNGS, false, &report);
        }
    }
    qsort(x->plan, x->n, sizeof *x->plan, by_cost);
}

/* Takes the first plan whose layout fits `most` bytes, or with `least` the smallest layout. */
static bool choose(const Ladder *x, const LsProb *p, int64_t most, bool least, LsPipePlan *out)
{
    bool found = false;
    for (uint32_t k = 0; k < x->n && (!found || least); k++) {
        LsPipeLayout l;
        if (k > 0 && x->plan[k].cost == x->plan[k - 1].cost && x->plan[k].arena == x->plan[k - 1].arena)
            continue;
        const int64_t below = !least ? most : found ? out->layout.arena - 1 : 0;
        const bool fits = ls_pipe_layout(x->arena, x->c, x->stage, &out->graph, p, &x->plan[k], x->wish->slots, below, &l);
        if (fits) {
            out->least = l.arena;
            out->layout = l;
            found = true;
        }
    }
    return found;
}

static bool plan_none(const Ladder *x, const LsPipeGraph *g, const LsProb *p, LsPipePlan *out)
{
    LsPlan none;
    LsPlanReport report;
    LsPipeLayout l;
    const LsPlanOptions o = {.strategy = "none", .unproven = true};
    if (!ls_plan(x->arena, &g->dag, &o, &none, &report))
        return false;
    ls_pipe_layout(x->arena, x->c, x->stage, &out->graph, p, &none, x->wish->slots, 0, &l);
    out->none_arena = l.arena;
    return true;
}

static bool has_hints(const LsHints *h) { return h->nkeep > 0 || h->nforget > 0 || h->recompute != LS_RECOMPUTE_AUTO; }

bool ls_pipe_plan(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeWish *wish, LsPipePlan *out, char *why,
                   size_t room)
{
    LsPipeGraph g;
    LsHinted hinted;
    *out = (LsPipePlan){.budget = wish->budget};
    why[0] = '\0';
    ls_pipe_graph(arena, c, stage, false, &g);
    ls_pipe_graph(arena, c, stage, true, &out->graph);
    const LsProb *p = ls_prob_new(arena, &out->graph.dag, !wish->plan.no_inplace);
    Ladder x = {.arena = arena, .c = c, .stage = stage, .wish = wish,
                .strategy = wish->plan.strategy != NULL ? wish->plan.strategy : "auto"};
    if (!plan_none(&x, &g, p, out))
        return false;
    if (wish->percent > 0)
        out->budget = (int64_t)floor((double)out->none_arena * wish->percent / 100);
    if (has_hints(&wish->hints)) {
        if (!ls_hints_apply(arena, &g.dag, &wish->hints, &hinted, why, room))
            return false;
        x.hinted = &hinted;
    } else if ((x.planner = ls_planner_new(arena, &g.dag, &wish->plan)) == NULL) {
        return false;
    }
    climb(&x, out->budget <= 0 && !wish->least);
    const bool found = choose(&x, p, out->budget, wish->least, out);
    if (!found)
        choose(&x, p, 0, true, out);
    if (x.planner != NULL)
        ls_planner_free(x.planner);
    return found;
}
