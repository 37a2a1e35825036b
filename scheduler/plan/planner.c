/* scheduler/plan/planner.c -- chooses the candidate that fits, and writes the report. */
#include "scheduler/plan/planner.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/algorithms/tasks.h"
#include "scheduler/bounds/lower_bound.h"
#include "scheduler/candidates/candidate_packing.h"
#include "scheduler/plan/run_strategies.h"
#include "scheduler/strategies/published_strategies.h"
#include "scheduler/strategies/strategy_names.h"

struct LsPlanner {
    LsArena *arena;             /* the caller's */
    LsArena *scratch;           /* lives as long as the planning */
    const LsPlanOptions *o;
    LsCandidates *pool;
    LsPlanReport common;        /* the part that all reports share */
    LsPlanReport *report;       /* report of the plan being chosen */
    LsBounder *bounder;         /* made when the first plan is chosen */
    LsFilled filled;
    LsArena *aside;             /* for the plan "none", which is made in parallel */
    int64_t budget;             /* bytes, as the options ask */
};

bool ls_plan_has_strategy(const char *want)
{
    return ls_strategy_find(want) != NULL;
}

/* Returns whether the candidate counts for strategy `want`. */
static bool counts(const char *want, const LsCand *c)
{
    return ls_strategy_counts(want, c->strategy) && !(c->aside && strcmp(want, "auto") == 0);
}

/* Returns whether a plan of the candidate may fit the budget. */
static bool may_fit(const LsPlanner *pl, const LsCand *c, const char *want, int64_t budget)
{
    return counts(want, c)
           && (budget <= 0 || c->peak - pl->pool->prob->dag->alignment < budget);
}

/* Among candidates of equal cost, returns the least peak. `first` is the first of them; the list is
 * sorted by cost. */
static LsCand *smallest_as_cheap(const LsPlanner *pl, const char *want, uint32_t first)
{
    LsCand *all = pl->pool->cand, *best = &all[first];
    for (uint32_t k = first + 1; k < pl->pool->n && !ls_dearer(all[k].cost, all[first].cost); k++)
        if (counts(want, &all[k]) && all[k].peak < best->peak)
            best = &all[k];
    return best;
}

/* Returns the cheapest candidate of strategy `want` whose arena fits the budget. Candidates are
 * sorted by cost. The first mostly fits, so it is packed alone and the others several at a time. */
static LsCand *cheapest(LsPlanner *pl, const char *want, int64_t budget)
{
    LsCand *some[LS_PACK_TOGETHER];
    for (uint32_t k = 0, n, many = 1; k < pl->pool->n; many = LS_PACK_TOGETHER) {
        for (n = 0; k < pl->pool->n && n < many; k++)
            if (may_fit(pl, &pl->pool->cand[k], want, budget))
                some[n++] = &pl->pool->cand[k];
        if (n > 0 && budget <= 0)
            return smallest_as_cheap(pl, want, (uint32_t)(some[0] - pl->pool->cand));
        ls_candidates_pack(pl->pool, some, n, budget);
        for (uint32_t j = 0; j < n; j++)
            if (some[j]->plan->arena <= budget)
                return some[j];
    }
    return NULL;
}

/* Returns the candidate after `last` by rising peak (last = NULL: the first), or NULL. */
static LsCand *next_by_peak(LsCandidates *pool, const char *want, const LsCand *last)
{
    LsCand *next = NULL;
    for (uint32_t k = 0; k < pool->n; k++) {
        LsCand *c = &pool->cand[k];
        bool after = last == NULL || c->peak > last->peak || (c->peak == last->peak && c > last);
        after &= next == NULL || c->peak < next->peak;
        if (after && counts(want, c))
            next = c;
    }
    return next;
}

/* Returns the candidate of least arena; the tie-break is the least peak. Live peaks are lower
 * bounds on arenas, so most candidates need no packing, and the others only enough to rule them
 * out. At most `full` candidates are packed thoroughly: the first alone, then several at a time. */
static LsCand *smallest(LsCandidates *pool, const char *want, uint32_t full, int64_t *arena)
{
    LsCand *best = NULL, *some[LS_PACK_TOGETHER], *c = NULL;
    int64_t slack = pool->prob->dag->alignment;         /* peaks use aligned sizes */
    uint32_t k = 0, n, most;
    do {
        int64_t good = best == NULL ? 0 : *arena - 1;
        most = best == NULL || k >= full ? 1 : LS_PACK_TOGETHER;
        for (n = 0; n < most && (c = next_by_peak(pool, want, c)) != NULL
                    && (best == NULL || c->peak - slack < *arena);)
            some[n++] = c;
        ls_candidates_pack(pool, some, n, k < full ? good : INT64_MAX);
        for (uint32_t j = 0; j < n; j++) {
            int64_t mine = some[j]->plan->arena;
            if (k >= full)
                mine = some[j]->quick[0];           /* independent of earlier packings of it */
            else if (mine <= good)
                mine = ls_candidates_plan(pool, some[j], 0)->arena;
            if (best == NULL || mine < *arena) {
                best = some[j];
                *arena = mine;
            }
        }
        k += n;
    } while (n == most);                            /* fewer: no candidate is left */
    return best;
}

static uint32_t count_again(const LsPlan *plan)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < plan->nstep; s++)
        n += plan->step[s].again;
    return n;
}

static void set_row(LsPlanRow *row, const LsPlan *plan)
{
    row->feasible = true;
    row->live_peak = plan->live_peak;
    row->arena = plan->arena;
    row->overhead = ls_plan_overhead(plan);
    row->again = count_again(plan);
}

static void add_row(LsPlanner *pl, const char *name, const char *want, int64_t budget)
{
    LsPlanRow *row = &pl->report->row[pl->report->nrow++];
    *row = (LsPlanRow){.name = name};
    if (strcmp(name, "none") == 0) {
        const LsPlan *none = pl->common.none;
        row->least = none->arena;
        if (budget <= 0 || none->arena <= budget)
            set_row(row, none);
        return;
    }
    if (strcmp(name, "exact") == 0)
        row->note = pl->filled.exact_note;
    if (strcmp(name, "approx") == 0 || (strcmp(name, "exact") == 0 && row->note == NULL))
        row->note = pl->filled.left_out;
    row->least = pl->report->least;
    if (strcmp(name, want) != 0)
        smallest(pl->pool, name, 0, &row->least);
    LsCand *c = cheapest(pl, name, budget);
    if (c != NULL)
        set_row(row, ls_candidates_plan(pl->pool, c, budget > 0 ? budget : INT64_MAX));
}

static int by_bytes(const void *x, const void *y)
{
    const LsPlanOwner *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

/* Lists the tensors live at the peak of the sequence. */
static void find_owners(LsPlanner *pl, const LsSeq *seq)
{
    const LsProb *p = pl->pool->prob;
    LsPlanReport *r = pl->report;
    LsLive *l = pl->pool->live;
    ls_live(p, seq, l);
    if (seq->n == 0)
        return;
    r->peak_step = l->peak_run;
    r->peak_node = seq->node[l->peak_run];
    r->peak_workspace = p->dag->node[r->peak_node].workspace;
    r->owner = ls_arena_alloc(pl->arena, l->ninst + 1u, sizeof *r->owner);
    for (uint32_t k = 0; k < l->ninst; k++) {
        const LsInstance *in = &l->inst[k];
        bool there = in->from <= r->peak_step && r->peak_step <= in->to
                     && !(in->of != LS_NO_ID && in->from == r->peak_step);
        if (there && p->size[in->tensor] > 0)
            r->owner[r->nowner++] = (LsPlanOwner){in->tensor, p->dag->tensor[in->tensor].bytes};
    }
    qsort(r->owner, r->nowner, sizeof *r->owner, by_bytes);
}

static bool explain(LsPlanner *pl, const char *want)
{
    LsPlanReport *r = pl->report;
    const LsDag *g = pl->pool->prob->dag;
    const char *node = g->nnode ? g->node[r->peak_node].name : "";
    r->error = ls_arena_printf(pl->arena,
                               "no plan of strategy %s fits %" PRId64 " bytes; the least "
                               "found needs %" PRId64 ", for node '%s' with %u live tensors, the "
                               "largest '%s' of %" PRId64 " bytes; no plan of any kind can do with "
                               "less than %" PRId64,
                               want, r->budget, r->least, node ? node : "", r->nowner,
                               r->nowner ? ls_dag_label(g, r->owner[0].tensor) : "",
                               r->nowner ? r->owner[0].bytes : 0,
                               r->least_bound);
    return false;
}

static int64_t store_all(LsArena *scratch, const LsProb *p, LsLive *live)
{
    LsSeq seq = {ls_arena_alloc(scratch, p->n + 1u, sizeof *seq.node), 0};
    for (uint32_t i = 0; i < p->n; i++)
        if (p->needed[i])
            seq.node[seq.n++] = i;
    LsProb apart = *p;
    apart.inplace = false;
    ls_live(&apart, &seq, live);
    return live->peak;
}

static LsBounder *bounder_of(LsPlanner *pl)
{
    if (pl->bounder == NULL)
        pl->bounder =
            ls_bounder_new(pl->pool->prob, &(LsBoundOptions){.prove = pl->o->prove,
                                                              .effort = pl->o->effort});
    return pl->bounder;
}

int64_t ls_planner_bounds(LsPlanner *pl, const int64_t *budget, uint32_t n, double *cost)
{
    ls_bounder_curve(bounder_of(pl), budget, n, cost);
    return ls_bounder_at(bounder_of(pl), 0, 0).least;
}

/* Sets the lower bounds of the report. plan_cost: cost of the plan found, 0 if none was. */
static void prove(LsPlanner *pl, int64_t budget, double plan_cost)
{
    LsPlanReport *r = pl->report;
    if (pl->o->unproven)
        return;
    LsBound b = ls_bounder_at(bounder_of(pl), budget, plan_cost);
    r->bound = b.cost;
    r->separator = b.separator;
    r->least_bound = b.least;
    r->impossible = b.infeasible;
}

/* The proof for the chosen plan runs in parallel with the packings for the report. */
typedef struct Proof { LsPlanner *pl; int64_t budget; double plan_cost; } Proof;

static void run_proof(void *proof)
{
    const Proof *x = proof;
    prove(x->pl, x->budget, x->plan_cost);
}

static bool choose(LsPlanner *pl, const char *want, int64_t budget, bool tightest, LsPlan *out)
{
    LsPlanReport *r = pl->report;
    uint32_t thorough = ls_candidates_thorough(pl->pool);
    LsCand *least = tightest ? smallest(pl->pool, want, thorough, &r->least) : NULL;
    if (tightest)
        budget = r->least;
    LsCand *c = cheapest(pl, want, budget);
    Proof proof = {pl, budget, c ? c->cost : 0};
    LsTask *task = ls_task_start(run_proof, &proof);
    bool rough = c != NULL && ls_candidates_rough(pl->pool);
    if (least == NULL && c != NULL && !rough) {     /* pack both in parallel */
        LsCand *both[] = {c, next_by_peak(pl->pool, want, NULL)};
        ls_candidates_pack(pl->pool, both, both[0] == both[1] ? 1 : 2, 0);
    }
    if (least == NULL)
        least = smallest(pl->pool, want, rough ? 0 : c ? 1 : thorough, &r->least);
    const LsPlan *plan = c ? ls_candidates_plan(pl->pool, c, rough ? budget : 0) : NULL;
    if (plan != NULL && plan->arena < r->least)
        r->least = plan->arena;
    r->row = ls_arena_alloc(pl->arena, LS_NSTRATEGY, sizeof *r->row);
    for (int k = 0; k < LS_NSTRATEGY; k++)
        if (pl->o->compare || strcmp(want, "auto") == 0
            || ls_strategy_counts(want, ls_strategy_name[k].name))
            add_row(pl, ls_strategy_name[k].name, want, budget);
    find_owners(pl, c ? &c->order : &least->order);
    ls_task_wait(task);
    if (c == NULL)
        return explain(pl, want);
    r->feasible = true;
    ls_plan_copy(pl->arena, plan, out);      /* the pool's arena ends with the planning */
    ls_plan_hash(out, r->hash);
    return true;
}

static void set_none(LsPlanner *pl, const LsPlan *none)
{
    const LsPlanOptions *o = pl->o;
    LsPlanReport *r = &pl->common;
    r->none = none;
    r->none_peak = none->live_peak;
    r->none_arena = none->arena;
    pl->budget =
        ls_budget_arena_bytes(&o->budget, o->budget.of_store_all ? r->store_all : none->arena);
}

/* Makes the plan "none" from its own copy of the problem, as other threads use the planner's. */
static const LsPlan *make_none(LsPlanner *pl)
{
    int64_t arena;
    pl->aside = ls_arena_new();
    LsProb *p = ls_prob_new(pl->aside, pl->pool->prob->dag, pl->pool->prob->inplace);
    p->unplaced = pl->pool->prob->unplaced;
    LsCandidates *pool = ls_candidates_new(pl->aside, p);
    LsPlan *none = ls_arena_alloc(pl->aside, 1, sizeof *none);
    ls_strategy_none(pool);
    ls_plan_copy(pl->aside, smallest(pool, "none", 1, &arena)->plan, none);
    ls_candidates_free(pool);
    return none;
}

/* Does the work that needs no candidates: the plan "none" and, for rough graphs, the proof for the
 * options' budget at any plan cost. A processor is idle while the pool is filled, but not during
 * the packing afterwards. */
static void look_ahead(void *planner)
{
    LsPlanner *pl = planner;
    set_none(pl, make_none(pl));
    if (ls_candidates_rough(pl->pool) && pl->budget > 0 && !pl->o->unproven)
        ls_bounder_at(bounder_of(pl), pl->budget, 0);
}

/* Takes the plan "none" from the pool if no other plan is asked for. */
static const LsPlan *none_of_pool(LsPlanner *pl)
{
    int64_t arena;
    return smallest(pl->pool, "none", 1, &arena)->plan;
}

static void fill(LsPlanner *pl)
{
    bool only = pl->o->strategy != NULL && strcmp(pl->o->strategy, "none") == 0 && !pl->o->compare;
    LsTask *task = only ? NULL : ls_task_start(look_ahead, pl);
    pl->filled = ls_candidates_fill(pl->arena, pl->scratch, pl->o, pl->pool, pl->common.store_all);
    if (task != NULL)
        ls_task_wait(task);
    else
        set_none(pl, none_of_pool(pl));
    pl->common.cut = pl->filled.cut;
    LsPlan *none = ls_arena_alloc(pl->arena, 1, sizeof *none);
    ls_plan_copy(pl->arena, pl->common.none, none);
    pl->common.none = none;
}

/* Without offsets no size is rounded up. */
static const LsDag *unaligned(LsArena *arena, const LsDag *dag)
{
    LsDag *copy = ls_arena_alloc(arena, 1, sizeof *copy);
    *copy = *dag;
    copy->alignment = 1;
    return copy;
}

LsPlanner *ls_planner_new(LsArena *arena, const LsDag *dag, const LsPlanOptions *options)
{
    if (!ls_plan_has_strategy(options->strategy ? options->strategy : "auto"))
        return NULL;
    LsArena *scratch = ls_arena_new();
    dag = options->no_offsets ? unaligned(arena, dag) : dag;
    LsProb *p = ls_prob_new(scratch, dag, !options->no_inplace);
    p->unplaced = options->no_offsets;
    LsPlanner *pl = ls_arena_alloc(arena, 1, sizeof *pl);
    *pl = (LsPlanner){.arena = arena, .scratch = scratch, .o = options,
                      .pool = ls_candidates_new(scratch, p)};
    pl->common = (LsPlanReport){.state_bytes = options->state_bytes, .base_cost = p->base_cost,
                                .bound = ls_bound_least_cost(p), .separator = LS_NO_ID,
                                .store_all = store_all(scratch, p, pl->pool->live)};
    pl->pool->least_cost = pl->common.bound;
    fill(pl);
    return pl;
}

void ls_planner_free(LsPlanner *pl)
{
    if (pl->bounder != NULL)
        ls_bounder_free(pl->bounder);
    if (pl->aside != NULL)
        ls_arena_free(pl->aside);
    ls_candidates_free(pl->pool);
    ls_arena_free(pl->scratch);
}

static bool no_such_strategy(LsArena *arena, const char *want, LsPlanReport *report)
{
    report->error = ls_arena_printf(
        arena, "no strategy '%s'; there are auto, none, chen, exact, approx", want);
    return false;
}

static bool ask(LsPlanner *pl, const char *want, int64_t budget, bool tightest, LsPlan *out,
                LsPlanReport *report)
{
    *report = pl->common;
    report->budget = budget;
    pl->report = report;
    if (!ls_plan_has_strategy(want))
        return no_such_strategy(pl->arena, want, report);
    return choose(pl, want, budget, tightest, out);
}

bool ls_planner_ask(LsPlanner *pl, const char *strategy, int64_t budget, LsPlan *out,
                    LsPlanReport *report)
{
    return ask(pl, strategy, budget, false, out, report);
}

bool ls_planner_least(LsPlanner *pl, const char *strategy, LsPlan *out, LsPlanReport *report)
{
    return ask(pl, strategy, 0, true, out, report);
}

bool ls_plan(LsArena *arena, const LsDag *dag, const LsPlanOptions *options, LsPlan *out,
             LsPlanReport *report)
{
    const char *want = options->strategy ? options->strategy : "auto";
    LsPlanner *pl = ls_planner_new(arena, dag, options);
    if (pl == NULL) {
        *report =
            (LsPlanReport){.state_bytes = options->state_bytes, .budget = options->budget.bytes};
        return no_such_strategy(arena, want, report);
    }
    bool ok = ask(pl, want, pl->budget, options->budget.least, out, report);
    ls_planner_free(pl);
    return ok;
}

bool ls_plan_none(LsArena *arena, const LsDag *dag, LsPlan *out)
{
    LsPlanReport report;
    return ls_plan(arena, dag, &(LsPlanOptions){.strategy = "none"}, out, &report);
}
