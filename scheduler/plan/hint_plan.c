/* scheduler/plan/hint_plan.c -- plans the graph that hints changed, and translates the plan
 * back. */
#include "scheduler/plan/hint_plan.h"

#include <string.h>

#include "scheduler/bounds/lower_bound.h"
#include "scheduler/candidates/plan_build.h"

typedef struct Runs {           /* the runs of the changed graph's plan */
    uint32_t *node, n;
    uint32_t *first;            /* by run: its first result; one extra entry at the end */
    uint32_t *to;               /* by result: the last run that reads it; n: it lives to the end */
} Runs;

static Runs find_runs(LsArena *arena, const LsDag *g, const LsPlan *plan)
{
    Runs r = {ls_arena_alloc(arena, plan->nstep + 1u, sizeof *r.node), 0, NULL, NULL};
    uint32_t *now = ls_arena_alloc(arena, g->ntensor + 1u, sizeof *now), made = 0;
    for (uint32_t s = 0; s < plan->nstep; s++)
        if (!plan->step[s].free) {
            r.node[r.n++] = plan->step[s].id;
            made += g->node[plan->step[s].id].nout;
        }
    r.first = ls_arena_alloc(arena, r.n + 1u, sizeof *r.first);
    r.to = ls_arena_alloc(arena, made + 1u, sizeof *r.to);
    made = 0;
    for (uint32_t s = 0; s < r.n; s++) {
        const LsDagNode *n = &g->node[r.node[s]];
        for (uint32_t k = 0; k < n->nin; k++)
            if (!g->tensor[n->in[k]].persistent)
                r.to[now[n->in[k]]] = s;
        r.first[s] = made;
        for (uint32_t k = 0; k < n->nout; k++) {
            now[n->out[k]] = made;
            r.to[made++] = s;
        }
    }
    r.first[r.n] = made;
    for (uint32_t t = 0; t < g->ntensor; t++)
        if (g->tensor[t].output && !g->tensor[t].persistent)
            r.to[now[t]] = r.n;
    return r;
}

/* Returns whether all results of run s that others read are live anyway: made since the turn, and
 * read later. until: by tensor of the old graph, the last run that reads the live instance. */
static bool is_there(const LsHinted *h, const Runs *r, uint32_t s, const uint32_t *until)
{
    const LsDagNode *n = &h->dag->node[r->node[s]];
    bool used = false;
    for (uint32_t k = 0; k < n->nout; k++) {
        uint32_t t = h->tensor_of[n->out[k]];
        if (r->to[r->first[s] + k] == s || t == LS_NO_ID)
            continue;
        used = true;
        if (until[t] <= s)
            return false;
    }
    return used && n->nupd == 0;
}

/* Translates the runs to the old graph. A value may have been made twice, as itself and as its
 * copy; the second run is left out where both would be live. */
static LsSeq bring_back(LsArena *arena, const LsHinted *h, const LsPlan *plan, uint32_t *left_out,
                        uint32_t before)
{
    Runs r = find_runs(arena, h->dag, plan);
    LsSeq seq = {ls_arena_alloc(arena, r.n + 1u, sizeof *seq.node), 0};
    uint32_t *until = ls_arena_alloc(arena, h->from->ntensor + 1u, sizeof *until);
    bool turned = false;
    *left_out = 0;
    for (uint32_t s = 0; s < r.n; s++) {
        const LsDagNode *n = &h->dag->node[r.node[s]];
        bool there = turned && is_there(h, &r, s, until);
        for (uint32_t k = 0; turned && k < n->nout; k++) {
            uint32_t t = h->tensor_of[n->out[k]], to = r.to[r.first[s] + k];
            if (t != LS_NO_ID)
                until[t] = there && until[t] > to ? until[t] : to;
        }
        turned |= r.node[s] == h->turn;
        *left_out += there && s < before;
        if (!there)
            seq.node[seq.n++] = h->node_of[r.node[s]];
    }
    return seq;
}

/* Without copies the runs and all offsets are the same; only node numbers may differ. */
static void renumber(const LsHinted *h, LsPlan *plan)
{
    for (uint32_t s = 0; s < plan->nstep; s++)
        if (!plan->step[s].free)
            plan->step[s].id = h->node_of[plan->step[s].id];
}

/* Translates the figures of the report to the old graph. */
static void bring_report_back(LsArena *arena, const LsHinted *h, LsPlanReport *r)
{
    LsPlan none;
    LsPlanReport plain;
    double base = r->base_cost;
    ls_plan(arena, h->from, &(LsPlanOptions){.strategy = "none", .no_offsets = r->none->unplaced},
            &none, &plain);
    r->store_all = plain.store_all;
    r->none_peak = plain.none_peak;
    r->none_arena = plain.none_arena;
    r->base_cost = plain.base_cost;
    for (uint32_t k = 0; k < r->nrow; k++) {
        LsPlanRow *row = &r->row[k];
        row->overhead = row->feasible && r->base_cost > 0
            ? (1 + row->overhead) * base / r->base_cost - 1 : 0;
        row->again += row->feasible ? h->ncopy : 0;
    }
    for (uint32_t k = 0; k < r->nowner; k++)
        r->owner[k].tensor = h->tensor_of[r->owner[k].tensor];
    while (r->nowner > 0 && r->owner[r->nowner - 1].tensor == LS_NO_ID)
        r->nowner--;
    r->peak_node = r->peak_node < h->dag->nnode ? h->node_of[r->peak_node] : r->peak_node;
}

/* The source of plans for the changed graph: a planner with a strategy, or options for a new
 * planning. */
typedef struct Source {
    LsPlanner *planner;         /* or NULL */
    const char *strategy;
    const LsPlanOptions *o;
    bool inplace;
} Source;

static bool ask(LsArena *arena, const LsHinted *h, const Source *from, int64_t budget,
                LsPlan *plan, LsPlanReport *report)
{
    if (from->planner != NULL)
        return ls_planner_ask(from->planner, from->strategy, budget, plan, report);
    LsPlanOptions o = *from->o;
    o.budget.bytes = budget;
    return ls_plan(arena, h->dag, &o, plan, report);
}

/* Builds the plan of the old graph from a plan of the changed graph with copies. */
static void rebuild(LsArena *arena, const LsHinted *h, bool inplace, const LsPlan *plan,
                    LsPlan *out, LsPlanReport *report)
{
    LsArena *scratch = ls_arena_new();
    LsProb *p = ls_prob_new(scratch, h->from, inplace);
    p->unplaced = plan->unplaced;
    uint32_t left_out;
    LsSeq seq = bring_back(scratch, h, plan, &left_out, report->peak_step);
    ls_plan_build(arena, p, &seq, plan->strategy, LS_PACK_FULL, 0, out);
    report->peak_step -= left_out;
    if (report->bound > out->cost)          /* a run was left out */
        report->bound = ls_bound_least_cost(p);
    ls_arena_free(scratch);
}

static bool plan_hinted(LsArena *arena, const LsHinted *h, const Source *from, int64_t budget,
                        bool least, LsPlan *out, LsPlanReport *report)
{
    enum { TRIES = 4 };
    int64_t target = budget;
    LsPlan plan;
    for (int k = 0; k < TRIES; k++) {
        bool ok = ask(arena, h, from, target, &plan, report);
        report->budget = budget;
        if (report->nrow > 0)           /* a search was made */
            bring_report_back(arena, h, report);
        if (!ok)
            return false;
        if (h->turn == LS_NO_ID) {
            renumber(h, &plan);
            *out = plan;
            break;
        }
        rebuild(arena, h, from->inplace, &plan, out, report);
        if (budget <= 0 || least || out->arena <= budget)
            break;
        target -= out->arena - budget;  /* the packing came out worse than in the search */
        report->feasible = k + 1 < TRIES;
    }
    if (h->turn != LS_NO_ID && least)
        report->least = out->arena;
    if (!report->feasible)
        report->error = "no plan that keeps to the hints fits the budget";
    ls_plan_hash(out, report->hash);
    return report->feasible;
}

bool ls_hints_plan(LsArena *arena, const LsHinted *h, const LsPlanOptions *options, LsPlan *out,
                   LsPlanReport *report)
{
    Source from = {.o = options, .inplace = !options->no_inplace};
    return plan_hinted(arena, h, &from, options->budget.bytes, options->budget.least, out, report);
}

bool ls_hints_ask(LsArena *arena, const LsHinted *h, LsPlanner *planner, bool inplace,
                  const char *strategy, int64_t budget, LsPlan *out, LsPlanReport *report)
{
    Source from = {.planner = planner, .strategy = strategy, .inplace = inplace};
    return plan_hinted(arena, h, &from, budget, false, out, report);
}
