/* scheduler/pipeline/stage_plan.c -- see the header.
 *
 * The planner knows the memory of one micro-batch, and the stage needs that of several: what a
 * micro-batch keeps between its phases counts once for each slot. So plans are made for a ladder of
 * budgets, and each is laid out. Where the cheapest plan does not fit, more follow: ladders with
 * bytes that only exist when phase B or W begins, which make the planner spare what is kept there;
 * a ladder with all that can be made again made again; and plans that forget what is cheapest to
 * make again, in parts of the bytes that B reads.
 *
 * A micro-batch that is kept gets the cheapest plan without recomputation, or if nothing fits
 * beside it, the smallest one. */
#include "scheduler/pipeline/stage_plan.h"

#include "scheduler/plan/hint_plan.h"

#include <math.h>
#include <stdlib.h>

enum {
    RUNGS = 8,
    RUNG_PLANS = RUNGS + 1,
    LADDERS = 6,
    PARTS = 6,
    MOST = LADDERS * RUNG_PLANS + PARTS
};

typedef struct Ladder {
    LsArena *arena;             /* of what ends with the planning */
    const LsPipeCut *c;
    uint32_t stage;
    const LsPipeWish *wish;
    LsPlanMemo *memo;
    LsPipeGraph *g;             /* without the late phase */
    int64_t alone;              /* bytes of one micro-batch without recomputation */
    const LsHinted *hinted;     /* of the ladder that is climbed; NULL: there are no hints */
    LsPlanner *planner;         /* of the ladder that is climbed, for the graph that hints
                                 * changed */
    const char *strategy;
    LsPlan plan[MOST]; uint32_t n;
    const LsPlan *chosen;
    LsPlan rich, poor;          /* with wish->kept: the cheapest plan without recomputation, the
                                 * smallest one */
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
        ok = ls_hints_ask(x->arena, x->hinted, x->planner, !x->wish->plan.no_inplace, x->strategy,
                          budget, to, report);
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

static bool is_same(const LsPlan *a, const LsPlan *b)
{
    return a->cost == b->cost && a->arena == b->arena && a->nstep == b->nstep;
}

/* False: it takes more than `most` bytes. */
static bool lay_out(const Ladder *x, LsArena *arena, const LsPipeGraph *full, const LsProb *p,
                    const LsPlan *plan, int64_t most, LsPipeLayout *to)
{
    if (!ls_pipe_layout(arena, x->c, x->stage, full, p, plan, x->wish->flow, most, to))
        return false;
    if (x->kept != NULL)
        ls_pipe_layout_kept(arena, x->c, x->stage, full, p, x->kept, to);
    return most <= 0 || to->arena <= most;
}

/* Takes the cheapest plan whose layout fits `most` bytes (0: any), among plans of equal cost the
 * smallest layout; or with `least` the smallest of all. */
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

static bool plan_none(Ladder *x, const LsProb *p, LsPipePlan *out)
{
    LsPlan none;
    LsPlanReport report;
    LsPipeLayout l;
    const LsPlanOptions o = {.strategy = "none", .unproven = true};
    if (!ls_plan(x->arena, &x->g->dag, &o, &none, &report))
        return false;
    x->alone = none.arena;
    if (x->wish->budget.percent <= 0)
        return true;
    ls_pipe_layout(x->arena, x->c, x->stage, &out->graph, p, &none, x->wish->flow, 0, &l);
    out->none_arena = l.arena;
    return true;
}

/* Sets the bytes that exist while phase B begins, and while W does. */
static void set_extra(Ladder *x, int64_t extra, int64_t late)
{
    x->g->dag.node[x->g->begin[LS_PHASE_B]].workspace = extra;
    if (x->g->begin[LS_PHASE_W] != LS_NO_ID)
        x->g->dag.node[x->g->begin[LS_PHASE_W]].workspace = late;
}

/* hinted: with `extra` bytes, likewise the graph; or NULL. */
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

/* Adds the plans that were made so before. Returns whether there are any. */
static bool recall(Ladder *x, const LsPlanSource *source)
{
    const LsPlanned old = ls_plan_memo_find(x->memo, x->g, source);
    for (uint32_t k = 0; k < old.n; k++)
        x->plan[x->n++] = old.plan[k];
    return old.found;
}

static bool has_globs(const LsHints *h) { return h->nkeep > 0 || h->nforget > 0; }

/* Adds a ladder of plans that keep to the hints. False, with a sentence: they have no meaning
 * here. */
static bool climb_hinted(Ladder *x, int64_t extra, const LsHints *hints, char *why, size_t room)
{
    const LsPlanSource source = {
        .policy = hints->recompute, .extra = extra, .effort = x->wish->plan.effort};
    const uint32_t first = x->n;
    LsHinted hinted;
    if (!has_globs(hints) && recall(x, &source))
        return true;
    set_extra(x, extra, 0);
    const bool ok = ls_hints_apply(x->arena, &x->g->dag, hints, &hinted, why, room);
    if (ok)
        climb_graph(x, hinted.dag, &hinted, false);
    set_extra(x, 0, 0);
    if (ok && !has_globs(hints))
        ls_plan_memo_add(x->memo, x->g, &source, x->plan + first, x->n - first);
    return ok;
}

static void climb_freely(Ladder *x, int64_t extra, int64_t late, bool one)
{
    const LsPlanSource source = {
        .extra = extra, .late = late, .effort = x->wish->plan.effort, .one = one};
    const uint32_t first = x->n;
    if (recall(x, &source))
        return;
    set_extra(x, extra, late);
    climb_graph(x, &x->g->dag, NULL, one);
    set_extra(x, 0, 0);
    ls_plan_memo_add(x->memo, x->g, &source, x->plan + first, x->n - first);
}

typedef struct Forgettable { uint32_t tensor; double price; int64_t bytes; } Forgettable;

static int by_price(const void *x, const void *y)
{
    const Forgettable *a = x, *b = y;
    if (a->price != b->price)
        return a->price < b->price ? -1 : 1;
    return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

/* Tensors that the backward part reads and that can be made again, by ns per byte of their makers.
 * Returns their number; *bytes: of all of them. */
static uint32_t find_forgettable(LsArena *arena, const LsHintMarks *m, const LsDag *g,
                                 Forgettable **to, int64_t *bytes)
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
        (*to)[n++] = (Forgettable){t, g->node[m->maker[t]].cost / (double)g->tensor[t].bytes,
                                   g->tensor[t].bytes};
        *bytes += g->tensor[t].bytes;
    }
    if (n > 0)
        qsort(*to, n, sizeof **to, by_price);
    return n;
}

/* Adds plans in which B reads nothing from F of the cheapest parts of what it could have made
 * again. */
static void plan_forgetting(Ladder *x)
{
    Forgettable *of;
    int64_t all;
    for (uint32_t part = 1; part <= PARTS; part++) {
        const LsPlanSource source = {.part = part, .effort = x->wish->plan.effort, .one = true};
        const uint32_t first = x->n;
        if (recall(x, &source))
            continue;
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
        ls_plan_memo_add(x->memo, x->g, &source, x->plan + first, x->n - first);
    }
}

/* All ladders, until the cheapest plan fits. */
static bool plan_freely(Ladder *x, const LsProb *p, LsPipePlan *out)
{
    const LsHints all = {.recompute = LS_RECOMPUTE_ALL};
    const LsPipeWish *w = x->wish;
    const bool any = out->budget <= 0 && !w->budget.least;
    char why[256];
    climb_freely(x, 0, 0, any);
    bool found = choose(x, p, out->budget, w->budget.least, out);
    if (any || w->flow->most == 1 ||
        (found && !w->budget.least &&
         !ls_dearer(out->layout.of[LS_PIPE_USUAL].plan.cost, x->plan[0].cost)))
        return found;
    climb_freely(x, x->alone / 2, 0, false);
    climb_freely(x, x->alone, 0, false);
    if (x->c->splits) {
        climb_freely(x, 0, x->alone, false);
        climb_freely(x, x->alone, x->alone, false);
    }
    if (w->plan.strategy == NULL) {
        climb_hinted(x, x->alone, &all, why, sizeof why);
        plan_forgetting(x);
    }
    return choose(x, p, out->budget, w->budget.least, out);
}

/* Where nothing runs again, what is kept is the same in all plans. */
static bool plan_hinted(Ladder *x, const LsProb *p, LsPipePlan *out, char *why, size_t room)
{
    const LsPipeWish *w = x->wish;
    const bool spares = w->flow->most > 1 && w->hints.recompute != LS_RECOMPUTE_NONE;
    if (!climb_hinted(x, 0, &w->hints, why, room)
        || (spares && !climb_hinted(x, x->alone, &w->hints, why, room)))
        return false;
    return choose(x, p, out->budget, w->budget.least, out);
}

/* Makes the plans of the micro-batch that is kept. It is the only one in its slot that has them. */
static bool plan_kept(Ladder *x, const LsProb *p, const LsPipePlan *out, char *why, size_t room)
{
    static const LsHints none = {.recompute = LS_RECOMPUTE_NONE};
    LsPipeTurn turn[] = {{.phase = LS_PHASE_F}, {.phase = LS_PHASE_B}, {.phase = LS_PHASE_W}};
    const LsPipeFlow flow = {.turn = turn, .nturn = x->c->splits ? 3 : 2, .most = 1};
    const LsPipeWish *wish = x->wish, alone = {.plan = wish->plan, .flow = &flow};
    LsPipePlan one = {.graph = out->graph};
    x->wish = &alone;
    if (!climb_hinted(x, 0, &none, why, room) || !choose(x, p, 0, true, &one))
        return false;
    x->poor = *x->chosen;
    choose(x, p, 0, false, &one);
    x->rich = *x->chosen;
    x->kept = wish->budget.least ? &x->poor : &x->rich;
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
    out->budget = ls_budget_arena_bytes(&x->wish->budget, out->none_arena);
    if (x->wish->keeps_one && !plan_kept(x, p, out, why, room))
        return false;
    const bool hinted = has_globs(&x->wish->hints) || x->wish->hints.recompute != LS_RECOMPUTE_AUTO;
    bool found = hinted ? plan_hinted(x, p, out, why, room) : plan_freely(x, p, out);
    if (!found && why[0] == '\0' && x->kept != NULL) {
        x->kept = &x->poor;
        found = choose(x, p, out->budget, x->wish->budget.least, out);
    }
    if (!found && why[0] == '\0')
        choose(x, p, 0, true, out);
    return found;
}

static bool is_run(const LsPlan *plan, uint32_t node)
{
    for (uint32_t s = 0; s < plan->nstep; s++)
        if (!plan->step[s].free && plan->step[s].id == node)
            return true;
    return false;
}

static uint32_t maker_of(const LsDag *g, uint32_t tensor)
{
    uint32_t i = 0;
    while (i < g->nnode
           && (g->node[i].alternative || !ls_id_in(g->node[i].out, g->node[i].nout, tensor)))
        i++;
    return i;
}

/* In the graph that is laid out nothing reads what is only sent, so its makers must be said to run,
 * unless a plan has an alternative in their place. */
static void require_messages(const Ladder *x, LsPipePlan *out)
{
    LsDag *g = &out->graph.dag;
    for (uint32_t k = 0; k < x->c->nmove; k++) {
        const uint32_t i =
            x->c->move[k].from == x->stage ? maker_of(g, x->c->move[k].tensor) : g->nnode;
        bool runs = i < g->nnode;
        for (uint32_t plan = 0; runs && plan < out->layout.nplan; plan++)
            runs = is_run(&out->layout.of[plan].plan, i);
        if (runs)
            g->node[i].required = true;
    }
}

/* Takes the layout over from the arena of the planning. */
static void take_chosen(LsArena *arena, const Ladder *x, LsPipePlan *out)
{
    require_messages(x, out);
    const double base =
        ls_prob_new(x->arena, &out->graph.dag, !x->wish->plan.no_inplace)->base_cost;
    for (uint32_t k = 0; k < out->layout.nplan; k++) {
        const LsPlan plan = out->layout.of[k].plan;
        ls_plan_copy(arena, &plan, &out->layout.of[k].plan);
        out->layout.of[k].plan.base_cost = base;
    }
    out->layout.windows = NULL;
    out->layout.placed = NULL;
}

bool ls_pipe_plan(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeWish *wish,
                  LsPipePlan *out, char *why, size_t room)
{
    Ladder *x = ls_arena_alloc(arena, 1, sizeof *x);
    *x = (Ladder){.arena = ls_arena_new(), .c = c, .stage = stage, .wish = wish,
                  .strategy = wish->plan.strategy != NULL ? wish->plan.strategy : "auto"};
    *out = (LsPipePlan){.budget = 0};
    x->memo = wish->memo != NULL ? wish->memo : ls_plan_memo_new(x->arena);
    x->g = ls_plan_memo_graph(x->memo, c, stage);
    ls_pipe_graph(arena, c, stage, true, &out->graph);
    const LsProb *p = ls_prob_new(x->arena, &out->graph.dag, !wish->plan.no_inplace);
    const bool found = plan(x, p, out, why, room);
    if (x->chosen != NULL)
        take_chosen(arena, x, out);
    ls_arena_free(x->arena);
    return found;
}
