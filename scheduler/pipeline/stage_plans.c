/* scheduler/pipeline/stage_plans.c -- see the header. */
#include "scheduler/pipeline/stage_plans.h"

#include <math.h>
#include <string.h>

#include "scheduler/pipeline/stage_graph.h"
#include "scheduler/plan/hint_plan.h"
#include "scheduler/plan/keep_forget_hints.h"
#include "scheduler/plan/planner.h"

enum { BUDGETS = 24 };          /* asked of the planner, from the least arena to that of everything kept */

typedef struct Known {          /* a stage with its plans */
    uint32_t *node, n;          /* of the whole graph */
    bool apart;
    LsKeepMode keep;
    LsStageFigures *of; uint32_t nplan;     /* from few bytes to many; times fall */
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

/* The phase that begins with this run. */
static LsPipePhase phase_at(const Walk *w, const LsPlan *plan, uint32_t s, uint32_t turn)
{
    const LsDagNode *n = &w->g->dag.node[plan->step[s].id];
    if (w->phase == LS_PHASE_W || plan->step[s].id == w->g->gate)
        return LS_PHASE_W;
    return s >= turn || n->kind != LS_DAG_FORWARD ? LS_PHASE_B : LS_PHASE_F;
}

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

/* The first step of the backward part, and of what runs again right before it. */
static uint32_t turn_of(const LsDag *g, const LsPlan *plan)
{
    uint32_t start = plan->nstep;
    bool again = false;
    for (uint32_t s = 0; s < plan->nstep; s++) {
        if (plan->step[s].free)
            continue;
        start = again ? start : s;
        again = plan->step[s].again;
        if (g->node[plan->step[s].id].kind != LS_DAG_FORWARD)
            return start;
    }
    return plan->nstep;
}

/* Times and bytes of the phases. In a plan that runs W within B, the bytes of B are those of both. */
static LsStageFigures figures(const LsStagePlanner *sp, const LsStages *s, uint32_t stage, const LsStageGraph *g,
                              const LsPlan *plan)
{
    LsStageFigures out = {.state = s->of[stage].state};
    Walk w = {.g = g, .out = &out, .fragments = plan->arena - plan->live_peak};
    const uint32_t turn = turn_of(&g->dag, plan);
    (void)sp;
    for (uint32_t k = 0; k < plan->nstep; k++) {
        const LsPlanStep *step = &plan->step[k];
        if (step->free) {
            w.live -= bytes_of(&g->dag, step->id);
            continue;
        }
        enter(&w, phase_at(&w, plan, k, turn));
        const uint32_t node = g->node_of[step->id];
        run(&w, plan, step, node != LS_NO_ID && !step->again && s->phase[node] == LS_PHASE_W);
    }
    enter(&w, LS_PHASE_W);
    return out;
}

static int64_t rank_bytes(const LsStageFigures *f, uint32_t slots)
{
    int64_t most = f->kept;
    for (int k = 0; k < LS_PHASES; k++)
        most = f->peak[k] > most ? f->peak[k] : most;
    return f->state + (int64_t)(slots - 1) * (f->kept > f->late ? f->kept : f->late) + most;
}

static double whole_ns(const LsStageFigures *f) { return f->ns[LS_PHASE_F] + f->ns[LS_PHASE_B] + f->ns[LS_PHASE_W]; }

/* One plan under a policy, or with every node once. */
static bool plan_policy(LsArena *tmp, const LsStageGraph *g, LsKeepMode keep, uint32_t effort, LsPlan *plan)
{
    char why[256];
    LsPlanReport report;
    LsHinted hinted;
    const LsPlanOptions want = {.unproven = true, .effort = effort, .strategy = keep == LS_KEEP_NEVER ? "none" : NULL};
    const LsHints hints = {.recompute = LS_RECOMPUTE_ALL};
    if (keep == LS_KEEP_NEVER)
        return ls_plan(tmp, &g->dag, &want, plan, &report);
    return ls_hints_apply(tmp, &g->dag, &hints, &hinted, why, sizeof why)
           && ls_hints_plan(tmp, &hinted, &want, plan, &report);
}

/* The plans of the planner's candidates for budgets between the least and that of everything kept. */
static void plan_freely(const LsStagePlanner *sp, const LsStages *s, uint32_t stage, const LsStageGraph *g, Known *to)
{
    LsArena *tmp = ls_arena_new();
    const LsPlanOptions want = {.unproven = true, .effort = sp->effort};
    LsPlanner *planner = ls_planner_new(tmp, &g->dag, &want);
    LsPlan least, plan;
    LsPlanReport report;
    to->of = ls_arena_alloc(sp->arena, BUDGETS + 1, sizeof *to->of);
    if (ls_planner_least(planner, "auto", &least, &report)) {
        const double low = (double)least.arena, high = fmax((double)report.none_arena, low);
        to->of[to->nplan++] = figures(sp, s, stage, g, &least);
        for (int k = 1; k <= BUDGETS; k++) {
            const int64_t budget = k == BUDGETS ? 0 : (int64_t)(low + (high - low) * k / BUDGETS);
            if (ls_planner_ask(planner, "auto", budget, &plan, &report))
                to->of[to->nplan++] = figures(sp, s, stage, g, &plan);
        }
    }
    ls_planner_free(planner);
    ls_arena_free(tmp);
}

static void make_plans(const LsStagePlanner *sp, const LsStages *s, uint32_t stage, Known *to)
{
    LsArena *tmp = ls_arena_new();
    const LsStageGraph *g = ls_stage_graph(tmp, sp->p, s, stage, to->apart);
    LsPlan plan;
    if (to->keep == LS_KEEP_AUTO)
        plan_freely(sp, s, stage, g, to);
    else if (plan_policy(tmp, g, to->keep, sp->effort, &plan)) {
        to->of = ls_arena_alloc(sp->arena, 1, sizeof *to->of);
        to->of[to->nplan++] = figures(sp, s, stage, g, &plan);
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

static const Known *known(LsStagePlanner *sp, const LsStages *s, uint32_t stage, LsKeepMode keep, bool apart)
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

LsStageFigures ls_stage_plan(LsStagePlanner *sp, const LsStages *s, uint32_t stage, LsKeepMode keep, bool apart,
                             uint32_t slots, int64_t budget)
{
    const Known *of = known(sp, s, stage, keep, apart);
    const LsStageFigures *best = NULL;
    for (uint32_t k = 0; k < of->nplan; k++) {
        const LsStageFigures *f = &of->of[k];
        const bool fits = budget <= 0 || rank_bytes(f, slots) <= budget;
        const bool best_fits = best != NULL && (budget <= 0 || rank_bytes(best, slots) <= budget);
        if (best == NULL || (fits && !best_fits) || (fits && whole_ns(f) < whole_ns(best))
            || (!fits && !best_fits && rank_bytes(f, slots) < rank_bytes(best, slots)))
            best = f;
    }
    return best != NULL ? *best : s->of[stage];
}
