/* scheduler/pipeline/pipe_plan.c -- see the header.
 *
 * The planner knows the memory of one micro-batch, and the stage needs that of several: what a micro-batch keeps between
 * its phases counts once for each slot. So plans are made for a ladder of budgets, and each is laid out. Where the cheapest
 * plan does not fit, more follow: ladders with bytes that only exist when phase B begins, which make the planner spare what
 * is kept there; a ladder with all that can be made again made again; and plans that forget what is cheapest to make again,
 * in parts of the bytes that B reads.
 *
 * A micro-batch that is kept gets the cheapest plan without recomputation, or if nothing fits beside it, the smallest one. */
#include "scheduler/pipeline/pipe_plan.h"

#include "scheduler/plan/hint_plan.h"

#include <math.h>
#include <stdlib.h>

enum { RUNGS = 8, RUNG_PLANS = RUNGS + 1, LADDERS = 4, PARTS = 6, MOST = LADDERS * RUNG_PLANS + PARTS };

typedef struct Ladder {
    LsArena *arena;             /* of what ends with the planning */
    const LsPipeCut *c;
    uint32_t stage;
    const LsPipeWish *wish;
    LsPipeGraph *g;             /* without the late phase */
    const LsHinted *hinted;     /* of the ladder that is climbed; NULL: there are no hints */
    LsPlanner *planner;         /* of the ladder that is climbed, for the graph that hints changed */
    const char *strategy;
    LsPlan plan[MOST]; uint32_t n;
    const LsPlan *chosen;
    LsPlan rich, poor;          /* with wish->kept: the cheapest plan without recomputation, the smallest one */
    const LsPlan *kept;         /* NULL, or one of these, which every layout has */
} Ladder;

/* Asks for a plan of one micro-batch within so many bytes; 0: any. */
static bool ask(Ladder *x, int64_t budget, bool least, LsPlanReport *report)
{
    LsPlan *to = &x->plan[x->n];
    bool ok = true;
    if (least) {
        ok = ls_planner_least(x->planner, x->strategy, to, report);
        budget = to->arena;
    }
    if (ok && x->hinted != NULL)
        ok = ls_hints_ask(x->arena, x->hinted, x->planner, !x->wish->plan.no_inplace, x->strategy, budget, to, report);
    else if (ok && !least)
        ok = ls_planner_ask(x->planner, x->strategy, budget, to, report);
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

/* False: it takes more than `most` bytes. With a micro-batch that is kept it may take less than without. */
static bool lay_out(const Ladder *x, LsArena *arena, const LsPipeGraph *full, const LsProb *p, const LsPlan *plan, int64_t most,
                    LsPipeLayout *to)
{
    if (!ls_pipe_layout(arena, x->c, x->stage, full, p, plan, x->wish->slots, x->kept != NULL ? 0 : most, to))
        return false;
    if (x->kept != NULL)
        ls_pipe_layout_kept(arena, x->c, x->stage, full, p, x->kept, x->wish->kept, to);
    return most <= 0 || to->arena <= most;
}

/* Takes the cheapest plan whose layout fits `most` bytes (0: any), among plans of equal cost the smallest layout; or with
 * `least` the smallest of all. */
static bool choose(Ladder *x, const LsProb *p, int64_t most, bool least, LsPipePlan *out)
{
    bool found = false;
    qsort(x->plan, x->n, sizeof *x->plan, by_cost);
    for (uint32_t k = 0; k < x->n; k++) {
        LsPipeLayout l;
        if (found && !least && ls_dearer(x->plan[k].cost, out->layout.of[LS_PIPE_USUAL].plan.cost))
            break;
        if (k > 0 && is_same(&x->plan[k], &x->plan[k - 1]))
            continue;
        const int64_t below = found ? out->layout.arena - 1 : least ? 0 : most;
        if (lay_out(x, x->arena, &out->graph, p, &x->plan[k], below, &l)) {
            out->least = l.arena;
            out->layout = l;
            x->chosen = &x->plan[k];
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

static void climb_graph(Ladder *x, const LsDag *g, const LsHinted *hinted, bool one)
{
    x->hinted = hinted;
    x->planner = ls_planner_new(x->arena, g, &x->wish->plan);
    if (x->planner != NULL) {
        climb(x, one);
        ls_planner_free(x->planner);
    }
    x->hinted = NULL;
}

/* Adds a ladder of plans that keep to the hints. False, with a sentence: they have no meaning here. */
static bool climb_hinted(Ladder *x, int64_t extra, const LsHints *hints, char *why, size_t room)
{
    LsHinted hinted;
    set_extra(x, extra);
    const bool ok = ls_hints_apply(x->arena, &x->g->dag, hints, &hinted, why, room);
    if (ok)
        climb_graph(x, hinted.dag, &hinted, false);
    set_extra(x, 0);
    return ok;
}

static void climb_freely(Ladder *x, int64_t extra, bool one)
{
    set_extra(x, extra);
    climb_graph(x, &x->g->dag, NULL, one);
    set_extra(x, 0);
}

typedef struct Forgettable { uint32_t tensor; double price; int64_t bytes; } Forgettable;

static int by_price(const void *x, const void *y)
{
    const Forgettable *a = x, *b = y;
    if (a->price != b->price)
        return a->price < b->price ? -1 : 1;
    return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

/* Tensors that the backward part reads and that can be made again, by ns per byte of their makers. Returns their number; *bytes:
 * of all of them. */
static uint32_t find_forgettable(LsArena *arena, const LsHintMarks *m, const LsDag *g, Forgettable **to, int64_t *bytes)
{
    bool *later = ls_arena_alloc(arena, g->ntensor + 1u, 1);
    *to = ls_arena_alloc(arena, g->ntensor + 1u, sizeof **to);
    uint32_t n = 0;
    *bytes = 0;
    for (uint32_t i = 0; i < g->nnode; i++)
        for (uint32_t k = 0; g->node[i].kind != LS_DAG_FORWARD && k < g->node[i].nin; k++)
            later[g->node[i].in[k]] = true;
    for (uint32_t t = 0; t < g->ntensor; t++) {
        if (!later[t] || g->tensor[t].bytes == 0 || ls_hint_obstacle(m, t) != NULL)
            continue;
        (*to)[n++] = (Forgettable){t, g->node[m->maker[t]].cost / (double)g->tensor[t].bytes, g->tensor[t].bytes};
        *bytes += g->tensor[t].bytes;
    }
    if (n > 0)
        qsort(*to, n, sizeof **to, by_price);
    return n;
}

/* Adds plans in which B reads nothing from F of the cheapest parts of what it could have made again. */
static void plan_forgetting(Ladder *x)
{
    Forgettable *of;
    int64_t all;
    for (int part = 1; part <= PARTS; part++) {
        LsHintMarks m = ls_hint_marks(x->arena, &x->g->dag);
        LsHinted hinted;
        int64_t sum = 0;
        const uint32_t n = find_forgettable(x->arena, &m, &x->g->dag, &of, &all);
        for (uint32_t k = 0; k < n && (part == PARTS || sum < all * part / PARTS); k++) {
            m.forgotten[of[k].tensor] = true;
            sum += of[k].bytes;
        }
        ls_hint_graph(x->arena, &m, &hinted);
        climb_graph(x, hinted.dag, &hinted, true);
    }
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
    if (any || w->slots == 1 || (found && !w->least && !ls_dearer(out->layout.of[LS_PIPE_USUAL].plan.cost, x->plan[0].cost)))
        return found;
    const int64_t whole = out->none_arena / w->slots;
    climb_freely(x, whole / 2, false);
    climb_freely(x, whole, false);
    if (w->plan.strategy == NULL) {
        climb_hinted(x, whole, &all, why, sizeof why);
        plan_forgetting(x);
    }
    return choose(x, p, out->budget, w->least, out);
}

static bool plan_hinted(Ladder *x, const LsProb *p, LsPipePlan *out, char *why, size_t room)
{
    const LsPipeWish *w = x->wish;
    if (!climb_hinted(x, 0, &w->hints, why, room)
        || (w->slots > 1 && !climb_hinted(x, out->none_arena / w->slots, &w->hints, why, room)))
        return false;
    return choose(x, p, out->budget, w->least, out);
}

/* Makes the plans of the micro-batch that is kept. It is the only one in its slot that has them. */
static bool plan_kept(Ladder *x, const LsProb *p, const LsPipePlan *out, char *why, size_t room)
{
    static const LsHints none = {.recompute = LS_RECOMPUTE_NONE};
    const LsPipeWish *wish = x->wish, alone = {.plan = wish->plan, .slots = 1};
    LsPipePlan one = {.graph = out->graph};
    x->wish = &alone;
    if (!climb_hinted(x, 0, &none, why, room) || !choose(x, p, 0, true, &one))
        return false;
    x->poor = *x->chosen;
    choose(x, p, 0, false, &one);
    x->rich = *x->chosen;
    x->kept = wish->least ? &x->poor : &x->rich;
    x->chosen = NULL;
    x->n = 0;
    x->wish = wish;
    return true;
}

/* Plans with what ends with the planning in x->arena. */
static bool plan(Ladder *x, const LsProb *p, LsPipePlan *out, char *why, size_t room)
{
    why[0] = '\0';
    if (!plan_none(x, p, out))
        return false;
    if (x->wish->percent > 0)
        out->budget = (int64_t)floor((double)out->none_arena * x->wish->percent / 100);
    if (x->wish->kept != NULL && !plan_kept(x, p, out, why, room))
        return false;
    bool found = has_hints(&x->wish->hints) ? plan_hinted(x, p, out, why, room) : plan_freely(x, p, out);
    if (!found && why[0] == '\0' && x->kept != NULL) {
        x->kept = &x->poor;
        found = choose(x, p, out->budget, x->wish->least, out);
    }
    if (!found && why[0] == '\0')
        choose(x, p, 0, true, out);
    return found;
}

bool ls_pipe_plan(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeWish *wish, LsPipePlan *out, char *why,
                   size_t room)
{
    LsPipeGraph g;
    Ladder *x = ls_arena_alloc(arena, 1, sizeof *x);
    *x = (Ladder){.arena = ls_arena_new(), .c = c, .stage = stage, .wish = wish, .g = &g,
                  .strategy = wish->plan.strategy != NULL ? wish->plan.strategy : "auto"};
    *out = (LsPipePlan){.budget = wish->budget};
    ls_pipe_graph(x->arena, c, stage, false, &g);
    ls_pipe_graph(arena, c, stage, true, &out->graph);
    const LsProb *p = ls_prob_new(x->arena, &out->graph.dag, !wish->plan.no_inplace);
    const bool found = plan(x, p, out, why, room);
    if (x->chosen != NULL)
        lay_out(x, arena, &out->graph, p, x->chosen, 0, &out->layout);
    ls_arena_free(x->arena);
    return found;
}
