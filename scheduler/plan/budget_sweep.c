/* scheduler/plan/budget_sweep.c -- many budgets, many strategies, one planning. */
#include "scheduler/plan/budget_sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_print.h"
#include "scheduler/strategies/strategy_names.h"

#define ONE(name, light, dark) name,
#define TWO(name, light, dark) name "-tc", name "-mc",
const char *const ls_sweep_strategies[] = {LS_STRATEGIES(ONE, TWO) NULL};

static uint32_t count_again(const LsPlan *plan)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < plan->nstep; s++)
        n += plan->step[s].again;
    return n;
}

/* A planning with its sweep and options. */
typedef struct Sweeping {
    LsArena *arena;
    LsSweep *sweep;
    LsPlanner *planner;
    const LsPlanOptions *o;
} Sweeping;

/* Returns whether plans are made for a graph with copies and then translated back. */
static bool has_copies(const LsSweep *sweep)
{
    return sweep->hinted != NULL && sweep->hinted->turn != UINT32_MAX;
}

/* The bytes of a plan that was translated back are not under control, so the plan for a smaller
 * budget may be better. */
static void keep_better(LsSweepCell *cell, const LsSweepCell *smaller)
{
    if (smaller->feasible && (!cell->feasible || smaller->plan.cost < cell->plan.cost))
        *cell = *smaller;
}

/* Fills the cell of strategy s at budget k; returns false if the strategy is unknown. */
static bool fill(const Sweeping *g, uint32_t k, uint32_t s)
{
    LsSweep *sweep = g->sweep;
    LsSweepPoint *p = &sweep->point[k];
    LsSweepCell *cell = &p->cell[s];
    LsPlanReport *r = ls_arena_alloc(g->arena, 1, sizeof *r);
    const char *name = sweep->strategy[s];
    cell->report = r;
    cell->feasible = sweep->hinted == NULL
                     ? ls_planner_ask(g->planner, name, p->budget, &cell->plan, r)
                     : ls_hints_ask(g->arena, sweep->hinted, g->planner, !g->o->no_inplace, name,
                                    p->budget, &cell->plan, r);
    if (!cell->feasible && r->nrow == 0)
        return false;
    cell->feasible = cell->feasible && p->budget >= sweep->floor;
    cell->again = cell->feasible ? count_again(&cell->plan) : 0;
    if (has_copies(sweep) && k > 0)
        keep_better(cell, &sweep->point[k - 1].cell[s]);
    sweep->store_all = r->store_all;
    sweep->base_cost = r->base_cost;
    return true;
}

/* Proves the bounds for all budgets in one search, also in the reports. A bound for a larger budget
 * holds for smaller ones. */
static void prove(const Sweeping *g)
{
    LsSweep *sweep = g->sweep;
    uint32_t n = sweep->npoint;
    int64_t *budget = ls_arena_alloc(g->arena, n, sizeof *budget);
    double *cost = ls_arena_alloc(g->arena, n, sizeof *cost);
    LsPlanOptions plain = *g->o;
    plain.strategy = "none";
    plain.compare = false;
    for (uint32_t k = 0; k < n; k++)
        budget[k] = sweep->point[k].budget;
    LsPlanner *of = has_copies(sweep) ? ls_planner_new(g->arena, sweep->dag, &plain) : g->planner;
    sweep->least_bound = ls_planner_bounds(of, budget, n, cost);
    if (of != g->planner)
        ls_planner_free(of);
    for (uint32_t k = n; k-- > 0; ) {
        LsSweepPoint *p = &sweep->point[k];
        if (k + 1 < n && cost[k] < cost[k + 1])
            cost[k] = cost[k + 1];
        if (budget[k] < sweep->least_bound)
            cost[k] = INFINITY;
        p->bound = sweep->base_cost > 0 ? cost[k] / sweep->base_cost - 1 : 0;
        for (uint32_t s = 0; s < sweep->nstrategy; s++) {
            p->cell[s].report->bound = cost[k];
            p->cell[s].report->least_bound = sweep->least_bound;
            p->cell[s].report->impossible = isinf(cost[k]);
        }
    }
}

bool ls_sweep_run(LsArena *arena, LsSweep *sweep, const LsPlanOptions *options,
                  void (*step)(void *, uint32_t point), void *context)
{
    LsPlanOptions o = *options;
    o.strategy = sweep->nstrategy == 1 ? sweep->strategy[0] : "auto";
    o.compare = sweep->nstrategy > 1;
    o.unproven = true;
    const LsDag *dag = sweep->hinted != NULL ? sweep->hinted->dag : sweep->dag;
    Sweeping g = {arena, sweep, ls_planner_new(arena, dag, &o), &o};
    bool ok = g.planner != NULL;
    for (uint32_t k = 0; ok && k < sweep->npoint; k++) {
        if (step != NULL)
            step(context, k);
        sweep->point[k].cell =
            ls_arena_alloc(arena, sweep->nstrategy, sizeof *sweep->point[k].cell);
        for (uint32_t s = 0; ok && s < sweep->nstrategy; s++)
            ok = fill(&g, k, s);
    }
    if (ok)
        prove(&g);
    if (g.planner != NULL)
        ls_planner_free(g.planner);
    return ok;
}

/* Prints a CSV field, quoted if it has a comma, a quote or a line end. */
static void put_field(FILE *to, const char *s)
{
    if (s[strcspn(s, ",\"\r\n")] == '\0') {
        fputs(s, to);
        return;
    }
    fputc('"', to);
    for (; *s != '\0'; s++)
        fprintf(to, *s == '"' ? "\"\"" : "%c", *s);
    fputc('"', to);
}

double ls_sweep_gap(const LsSweep *sweep, const LsSweepPoint *p, const LsSweepCell *c)
{
    double least = sweep->base_cost * (1 + p->bound);
    double over = sweep->base_cost > 0 ? (c->plan.cost - least) / sweep->base_cost : 0;
    return over > 0 ? over : 0;
}

void ls_sweep_csv(FILE *to, const LsSweep *sweep)
{
    fprintf(to, "model,budget_percent,budget_bytes,arena_budget_bytes,strategy,feasible,"
                "live_peak_bytes,arena_bytes,overhead,bound,gap,recomputations,plan,"
                "predicted_ms,measured_ms,measured_overhead,touched_bytes\n");
    for (uint32_t k = 0; k < sweep->npoint; k++)
        for (uint32_t s = 0; s < sweep->nstrategy; s++) {
            const LsSweepPoint *p = &sweep->point[k];
            const LsSweepCell *c = &p->cell[s];
            put_field(to, sweep->model);
            fprintf(to, ",%.4f,%" PRId64 ",%" PRId64 ",%s,%d", ls_sweep_percent(sweep, p),
                    ls_process_total(&sweep->process, p->budget), p->budget, sweep->strategy[s],
                    c->feasible);
            if (c->feasible)
                fprintf(to, ",%" PRId64 ",%" PRId64 ",%.9g,%.9g,%.9g,%" PRIu32 ",%s",
                        c->plan.live_peak, c->plan.arena, ls_plan_overhead(&c->plan), p->bound,
                        ls_sweep_gap(sweep, p, c), c->again, c->report->hash);
            else
                fprintf(to, ",,,,%.9g,,,", p->bound);      /* "inf": no plan exists */
            if (c->run.measured_ns > 0)
                fprintf(to, ",%.6g,%.6g,%.6g,%" PRId64 "\n", 1e-6 * c->run.predicted_ns,
                        1e-6 * c->run.measured_ns, ls_sweep_longer(sweep, &c->run),
                        c->run.touched);
            else
                fprintf(to, ",,,,\n");
        }
}

static void add_run(cJSON *o, const LsSweep *sweep, const LsSweepRun *run)
{
    if (run->measured_ns <= 0)
        return;
    cJSON_AddNumberToObject(o, "predicted_ms", 1e-6 * run->predicted_ns);
    cJSON_AddNumberToObject(o, "measured_ms", 1e-6 * run->measured_ns);
    cJSON_AddNumberToObject(o, "measured_overhead", ls_sweep_longer(sweep, run));
    cJSON_AddNumberToObject(o, "touched_bytes", (double)run->touched);
}

static cJSON *json_cell(const LsSweep *sweep, const LsSweepPoint *p, uint32_t s)
{
    const LsSweepCell *c = &p->cell[s];
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "strategy", sweep->strategy[s]);
    cJSON_AddBoolToObject(o, "feasible", c->feasible);
    if (!c->feasible)
        return o;
    cJSON_AddStringToObject(o, "plan", c->report->hash);
    cJSON_AddStringToObject(o, "made_by", c->plan.strategy);
    cJSON_AddNumberToObject(o, "live_peak_bytes", (double)c->plan.live_peak);
    cJSON_AddNumberToObject(o, "arena_bytes", (double)c->plan.arena);
    cJSON_AddNumberToObject(o, "overhead", ls_plan_overhead(&c->plan));
    cJSON_AddNumberToObject(o, "gap", ls_sweep_gap(sweep, p, c));
    cJSON_AddNumberToObject(o, "recomputations", c->again);
    add_run(o, sweep, &c->run);
    return o;
}

static cJSON *json_point(const LsSweep *sweep, const LsSweepPoint *p)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "budget_percent", ls_sweep_percent(sweep, p));
    cJSON_AddNumberToObject(o, "budget_bytes",
                            (double)ls_process_total(&sweep->process, p->budget));
    cJSON_AddNumberToObject(o, "arena_budget_bytes", (double)p->budget);
    cJSON_AddNumberToObject(o, "overhead_lower_bound", p->bound);     /* null: no plan exists */
    cJSON *cells = cJSON_AddArrayToObject(o, "strategies");
    for (uint32_t s = 0; s < sweep->nstrategy; s++)
        cJSON_AddItemToArray(cells, json_cell(sweep, p, s));
    return o;
}

void ls_sweep_json(FILE *to, const LsSweep *sweep)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "model", sweep->model);
    cJSON_AddStringToObject(root, "graph", sweep->dag->name);
    cJSON_AddNumberToObject(root, "whole_arena_bytes", (double)sweep->whole);
    cJSON_AddNumberToObject(root, "fixed_bytes", (double)ls_process_fixed(&sweep->process));
    cJSON_AddNumberToObject(root, "evaluation_arena_bytes", (double)sweep->floor);
    cJSON_AddNumberToObject(root, "store_all_peak_bytes", (double)sweep->store_all);
    cJSON_AddNumberToObject(root, "least_peak_lower_bound_bytes", (double)sweep->least_bound);
    cJSON_AddNumberToObject(root, "base_cost", sweep->base_cost);
    if (sweep->plain.measured_ns > 0) {
        cJSON_AddNumberToObject(root, "measured_threads", sweep->threads);
        add_run(cJSON_AddObjectToObject(root, "without_recomputation"), sweep, &sweep->plain);
    }
    cJSON *points = cJSON_AddArrayToObject(root, "points");
    for (uint32_t k = 0; k < sweep->npoint; k++)
        cJSON_AddItemToArray(points, json_point(sweep, &sweep->point[k]));
    ls_json_print(to, root);
}

static void text_run(FILE *to, const LsSweep *sweep, const char *budget, const char *strategy,
                     const LsSweepRun *run)
{
    fprintf(to, "%8s %10s %10.3f %10.3f %9.2f %% %10.1f\n", budget, strategy,
            1e-6 * run->predicted_ns, 1e-6 * run->measured_ns,
            100 * ls_sweep_longer(sweep, run), (double)run->touched / 1048576);
}

static void text_runs(FILE *to, const LsSweep *sweep)
{
    char budget[32];
    fprintf(to, "\nmeasured with %d thread%s, predicted for %s\n%8s %10s %10s %10s %11s %10s\n",
            sweep->threads, sweep->threads == 1 ? "" : "s",
            sweep->predicted_of != NULL ? sweep->predicted_of : "the costs of the plans", "budget",
            "strategy", "predict ms", "ms a step", "longer by", "MiB used");
    text_run(to, sweep, "-", "none", &sweep->plain);
    for (uint32_t k = sweep->npoint; k-- > 0; )
        for (uint32_t s = 0; s < sweep->nstrategy; s++) {
            const LsSweepRun *run = &sweep->point[k].cell[s].run;
            snprintf(budget, sizeof budget, "%.1f %%",
                     ls_sweep_percent(sweep, &sweep->point[k]));
            if (run->measured_ns > 0)
                text_run(to, sweep, budget, sweep->strategy[s], run);
        }
}

void ls_sweep_text(FILE *to, const LsSweep *sweep)
{
    fprintf(to, "%8s %10s", "budget", "MiB");
    for (uint32_t s = 0; s < sweep->nstrategy; s++)
        fprintf(to, " %10s", sweep->strategy[s]);
    fprintf(to, " %10s\n", "bound");
    for (uint32_t k = sweep->npoint; k-- > 0; ) {
        const LsSweepPoint *p = &sweep->point[k];
        fprintf(to, "%6.1f %% %10.1f", ls_sweep_percent(sweep, p), (double)p->budget / 1048576);
        for (uint32_t s = 0; s < sweep->nstrategy; s++)
            if (p->cell[s].feasible)
                fprintf(to, " %8.2f %%", ls_sweep_hundred(ls_plan_overhead(&p->cell[s].plan)));
            else
                fprintf(to, " %10s", "-");
        if (isinf(p->bound))
            fprintf(to, " %10s\n", "impossible");
        else
            fprintf(to, " %8.2f %%\n", ls_sweep_hundred(p->bound));
    }
    if (sweep->plain.measured_ns > 0)
        text_runs(to, sweep);
}
