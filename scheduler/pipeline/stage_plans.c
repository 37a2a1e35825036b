/* scheduler/pipeline/stage_plans.c -- see the header. */
#include "scheduler/pipeline/stage_plans.h"

#include <math.h>
#include <stdlib.h>

#include "scheduler/pipeline/stage_graph.h"
#include "scheduler/plan/hint_plan.h"
#include "scheduler/plan/planner.h"

enum { BUDGETS = 24 };          /* asked of the planner, from the least arena to that of everything kept */
enum { PARTS = 6 };             /* of the bytes that B reads: so many of them forgotten in turn, the cheapest first */

typedef struct Known {          /* a stage with its plans */
    uint32_t *node, n;          /* of the whole graph */
    bool apart;
    LsKeepMode keep;
    bool forgetful;             /* plans of few kept bytes are among them */
    LsStageFigures *of; uint32_t nplan;
} Known;

struct LsStagePlanner {
    LsArena *arena;
    const LsProb *p;
    uint32_t effort;
    Known *known; uint32_t n, room;
};

LsStagePlanner *ls_stage_planner_new(LsArena *arena, const LsProb *p, uint32_t effort)
{
    LsStagePlanner *sp = ls_arena_alloc(arena, 1, sizeof *sp);
    *sp = (LsStagePlanner){.arena = arena, .p = p, .effort = effort};
    return sp;
}

typedef struct Walk {           /* over the runs of a plan */
    const LsStageGraph *g;
    LsStageFigures *out;
    LsPipePhase phase;
    int64_t live, fragments;    /* fragments: of the arena beyond the live bytes */
} Walk;

static int64_t bytes_of(const LsDag *g, uint32_t t) { return ls_align(g->tensor[t].bytes, g->alignment); }

static void enter(Walk *w, LsPipePhase phase)
{
    if (w->phase == LS_PHASE_F && phase != LS_PHASE_F)
        w->out->kept = w->live;
    if (w->phase != LS_PHASE_W && phase == LS_PHASE_W)
        w->out->late = w->live;
    w->phase = phase;
}

static void run(Walk *w, const LsPlan *plan, const LsPlanStep *step, bool counts_as_w)
{
    const LsDag *g = &w->g->dag;
    const LsDagNode *n = &g->node[step->id];
    for (uint32_t k = 0; k < n->nout; k++)
        w->live += bytes_of(g, n->out[k]);
    for (uint32_t k = 0; k < step->nreuse; k++)
        w->live -= bytes_of(g, plan->reuse[step->reuse + k].in);
    int64_t *peak = &w->out->peak[w->phase];
    const int64_t now = w->live + ls_align(n->workspace, g->alignment) + w->fragments;
    *peak = now > *peak ? now : *peak;
    w->out->ns[counts_as_w && w->phase == LS_PHASE_B ? LS_PHASE_W : w->phase] += n->cost;
    w->out->again_ns += step->again ? n->cost : 0;
}

/* Times and bytes of the phases. In a plan that runs W within B, the bytes of B are those of both. */
static LsStageFigures figures(const LsStages *s, uint32_t stage, const LsStageGraph *g, const LsPlan *plan)
{
    LsStageFigures out = {.state = s->of[stage].state};
    Walk w = {.g = g, .out = &out, .fragments = plan->arena - plan->live_peak};
    for (uint32_t k = 0; k < plan->nstep; k++) {
        const LsPlanStep *step = &plan->step[k];
        if (step->free) {
            w.live -= bytes_of(&g->dag, step->id);
            continue;
        }
        const uint32_t node = g->node_of[step->id];
        if (w.phase == LS_PHASE_F && g->turn == LS_NO_ID && g->dag.node[step->id].kind != LS_DAG_FORWARD)
            enter(&w, LS_PHASE_B);
        run(&w, plan, step, node != LS_NO_ID && !step->again && s->phase[node] == LS_PHASE_W);
        if (step->id == g->turn || step->id == g->gate)
            enter(&w, step->id == g->turn ? LS_PHASE_B : LS_PHASE_W);
    }
    enter(&w, LS_PHASE_W);
    return out;
}

int64_t ls_stage_rank_bytes(const LsStageFigures *f, uint32_t slots)
{
    int64_t most = f->kept;
    for (int k = 0; k < LS_PHASES; k++)
        most = f->peak[k] > most ? f->peak[k] : most;
    return f->state + (int64_t)(slots - 1) * (f->kept > f->late ? f->kept : f->late) + most;
}

static double whole_ns(const LsStageFigures *f) { return f->ns[LS_PHASE_F] + f->ns[LS_PHASE_B] + f->ns[LS_PHASE_W]; }

typedef struct Forgettable { uint32_t tensor; double price; int64_t bytes; } Forgettable;

static int by_price(const void *x, const void *y)
{
    const Forgettable *a = x, *b = y;
    if (a->price != b->price)
        return a->price < b->price ? -1 : 1;
    return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

/* Tensors that the backward part reads and that can be made again, by ns per byte of their makers. */
static uint32_t find_forgettable(LsArena *tmp, const LsHintMarks *m, const LsDag *g, Forgettable **to, int64_t *bytes)
{
    bool *later = ls_arena_alloc(tmp, g->ntensor + 1u, 1);
    *to = ls_arena_alloc(tmp, g->ntensor + 1u, sizeof **to);
    uint32_t n = 0;
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

/* A plan in which B reads nothing from F of the cheapest `part` of what it could have made again, in PARTS. */
static bool plan_forgetting(LsArena *tmp, const LsStageGraph *g, int part, uint32_t effort, LsPlan *plan)
{
    const LsPlanOptions want = {.unproven = true, .effort = effort};
    LsHintMarks m = ls_hint_marks(tmp, &g->dag);
    LsHinted hinted;
    LsPlanReport report;
    Forgettable *of;
    int64_t all = 0, sum = 0;
    const uint32_t n = find_forgettable(tmp, &m, &g->dag, &of, &all);
    for (uint32_t k = 0; k < n && (part == PARTS || sum < all * part / PARTS); k++) {
        m.forgotten[of[k].tensor] = true;
        sum += of[k].bytes;
    }
    ls_hint_graph(tmp, &m, &hinted);
    return ls_hints_plan(tmp, &hinted, &want, plan, &report);
}

/* Every node once, in list order. */
static bool plan_once(LsArena *tmp, const LsStageGraph *g, LsPlan *plan)
{
    LsPlanReport report;
    return ls_plan(tmp, &g->dag, &(LsPlanOptions){.unproven = true, .strategy = "none"}, plan, &report);
}

/* The plans of the planner's candidates for budgets between the least and that of everything kept. */
static void plan_freely(const LsStagePlanner *sp, const LsStages *s, uint32_t stage, const LsStageGraph *g, Known *to)
{
    LsArena *tmp = ls_arena_new();
    const LsPlanOptions want = {.unproven = true, .effort = sp->effort};
    LsPlanner *planner = ls_planner_new(tmp, &g->dag, &want);
    LsPlan least, plan;
    LsPlanReport report;
    to->of = ls_arena_alloc(sp->arena, BUDGETS + 1 + PARTS, sizeof *to->of);
    if (ls_planner_least(planner, "auto", &least, &report)) {
        const double low = (double)least.arena, high = fmax((double)report.none_arena, low);
        to->of[to->nplan++] = figures(s, stage, g, &least);
        for (int k = 1; k <= BUDGETS; k++) {
            const int64_t budget = k == BUDGETS ? 0 : (int64_t)(low + (high - low) * k / BUDGETS);
            if (ls_planner_ask(planner, "auto", budget, &plan, &report))
                to->of[to->nplan++] = figures(s, stage, g, &plan);
        }
    }
    ls_planner_free(planner);
    ls_arena_free(tmp);
}

/* The planner minimises the memory of one micro-batch. A rank holds what several of them keep, so that keeping little may
 * be worth more than its peak shows. */
static void plan_forgetfully(const LsStagePlanner *sp, const LsStages *s, uint32_t stage, Known *to)
{
    LsArena *tmp = ls_arena_new();
    const LsStageGraph *g = ls_stage_graph(tmp, sp->p, s, stage, to->apart);
    LsPlan plan;
    for (int part = 1; part <= PARTS; part++)
        if (plan_forgetting(tmp, g, part, sp->effort, &plan))
            to->of[to->nplan++] = figures(s, stage, g, &plan);
    to->forgetful = true;
    ls_arena_free(tmp);
}

static void make_plans(const LsStagePlanner *sp, const LsStages *s, uint32_t stage, Known *to)
{
    LsArena *tmp = ls_arena_new();
    const LsStageGraph *g = ls_stage_graph(tmp, sp->p, s, stage, to->apart);
    LsPlan plan;
    if (to->keep == LS_KEEP_AUTO)
        plan_freely(sp, s, stage, g, to);
    else if (to->keep == LS_KEEP_NEVER ? plan_once(tmp, g, &plan) : plan_forgetting(tmp, g, PARTS, sp->effort, &plan)) {
        to->of = ls_arena_alloc(sp->arena, 1, sizeof *to->of);
        to->of[to->nplan++] = figures(s, stage, g, &plan);
    }
    ls_arena_free(tmp);
}

static bool is_same(const Known *k, const LsStages *s, uint32_t stage, uint32_t n)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        if (s->stage[i] == stage && (at == k->n || k->node[at++] != i))
            return false;
    return at == k->n;
}

static Known *known(LsStagePlanner *sp, const LsStages *s, uint32_t stage, LsKeepMode keep, bool apart)
{
    for (uint32_t k = 0; k < sp->n; k++)
        if (sp->known[k].keep == keep && sp->known[k].apart == apart && is_same(&sp->known[k], s, stage, sp->p->n))
            return &sp->known[k];
    sp->known = ls_arena_grow(sp->arena, sp->known, sp->n, sp->n + 1u, sizeof *sp->known, &sp->room);
    Known *to = &sp->known[sp->n++];
    *to = (Known){.node = ls_arena_alloc(sp->arena, sp->p->n + 1u, sizeof *to->node), .apart = apart, .keep = keep};
    for (uint32_t i = 0; i < sp->p->n; i++)
        if (s->stage[i] == stage)
            to->node[to->n++] = i;
    make_plans(sp, s, stage, to);
    return to;
}

/* The fastest plan that fits, or the one of the fewest bytes. budget 0: any fits. */
static const LsStageFigures *choose(const Known *of, uint32_t slots, int64_t budget)
{
    const LsStageFigures *best = NULL;
    for (uint32_t k = 0; k < of->nplan; k++) {
        const LsStageFigures *f = &of->of[k];
        const bool fits = budget <= 0 || ls_stage_rank_bytes(f, slots) <= budget;
        const bool best_fits = best != NULL && (budget <= 0 || ls_stage_rank_bytes(best, slots) <= budget);
        if (best == NULL || (fits && !best_fits) || (fits && whole_ns(f) < whole_ns(best))
            || (!fits && !best_fits && ls_stage_rank_bytes(f, slots) < ls_stage_rank_bytes(best, slots)))
            best = f;
    }
    return best;
}

LsStageFigures ls_stage_plan(LsStagePlanner *sp, const LsStages *s, uint32_t stage, LsKeepMode keep, bool apart,
                             uint32_t slots, int64_t budget)
{
    Known *of = known(sp, s, stage, keep, apart);
    const LsStageFigures *fastest = choose(of, slots, 0);
    if (fastest == NULL)
        return s->of[stage];
    if (keep == LS_KEEP_AUTO && !of->forgetful && budget > 0 && ls_stage_rank_bytes(fastest, slots) > budget)
        plan_forgetfully(sp, s, stage, of);
    return *choose(of, slots, budget);
}
