/* scheduler/plan/planner.h -- from a training graph and a budget to a plan. */
#ifndef LS_SCHEDULER_PLAN_PLANNER_H
#define LS_SCHEDULER_PLAN_PLANNER_H

#include "scheduler/candidates/plan_steps.h"
#include "scheduler/plan/plan_options.h"

typedef struct LsPlanRow {      /* one strategy */
    const char *name;
    bool feasible;              /* a plan of it fits the budget; then: */
    int64_t live_peak, arena;   /* bytes, of its cheapest plan that fits */
    double overhead;            /* of that plan */
    uint32_t again;             /* recomputations in that plan */
    int64_t least;              /* least arena among its plans, bytes */
    const char *note;           /* what a reader must know ("27358 lower sets"), or NULL */
} LsPlanRow;

typedef struct LsPlanOwner { uint32_t tensor; int64_t bytes; } LsPlanOwner;

typedef struct LsPlanReport {
    int64_t state_bytes;
    int64_t store_all;          /* live peak: every node once in the order of
                                 * the list, nothing in place */
    const LsPlan *none;         /* computes every node once: what a % budget refers to */
    int64_t none_peak, none_arena;          /* of that plan */
    int64_t budget;             /* as asked for, bytes; <= 0: unlimited */
    int64_t least;              /* least budget that a plan was found for */
    bool feasible;
    double base_cost;           /* of every node once */
    double bound;               /* no plan within the budget costs less (scheduler/bounds/lower_bound.h) */
    uint32_t separator;         /* the node whose first run proves that, or LS_NO_ID */
    int64_t least_bound;        /* no plan has a smaller live peak, bytes; 0: nothing known */
    bool impossible;            /* proven: no plan of any strategy is within the budget */
    bool cut;                   /* the time limit ended the search before its last move */
    LsPlanRow *row; uint32_t nrow;
    char hash[17];              /* of the plan */
    /* Who holds memory at the peak of the chosen plan; of the one with the
     * least arena if infeasible. */
    uint32_t peak_step;         /* among the runs of that plan */
    uint32_t peak_node;
    int64_t peak_workspace;     /* bytes */
    LsPlanOwner *owner; uint32_t nowner;    /* live tensors at the peak, largest first */
    const char *error;          /* why there is no plan: a sentence with the figures; or NULL */
    const char *costs;          /* for ls_view_json: where the nodes' costs are from, and */
    double step_ns;             /* what a step takes by them; or NULL */
    const char *against;        /* likewise: the verdict on an earlier plan (plan_diff.h); or NULL */
} LsPlanReport;

/* Plans `dag`. Everything in *out and *report comes from `arena`. returns false when nothing
 * fits the budget (report: the least that does, and what forces it) or the strategy has no such
 * name; *out is then untouched. A larger budget never gives a dearer plan; auto is never worse
 * than a named strategy that it runs itself: none and chen always, the DPs up to 600 lower sets,
 * in small steps and with the optima of the formulas up to 300, all more with more `seconds`. Rows
 * say in their notes what was left out. dag must be valid (ls_dag_check). */
bool ls_plan(LsArena *arena, const LsDag *dag, const LsPlanOptions *options, LsPlan *out,
             LsPlanReport *report);

/* Whether there is a strategy of that name. */
bool ls_plan_has_strategy(const char *name);

/* A planning whose candidates are made, so that plans for many budgets cost about as much as one.
 * They are monotone among each other, as those of ls_plan are. */
typedef struct LsPlanner LsPlanner;

/* Makes the candidates of options->strategy, and those of all strategies if it asks to compare;
 * its budget does not matter. NULL when there is no such strategy. dag, options and arena must
 * last as long as the planner. */
LsPlanner *ls_planner_new(LsArena *arena, const LsDag *dag, const LsPlanOptions *options);

/* As ls_plan, out of the candidates that are there: `strategy` is one whose candidates were asked
 * for. budget: bytes of arena; <= 0: unlimited. */
bool ls_planner_ask(LsPlanner *planner, const char *strategy, int64_t budget, LsPlan *out,
                    LsPlanReport *report);

/* The same for the least arena that is found. */
bool ls_planner_least(LsPlanner *planner, const char *strategy, LsPlan *out,
                      LsPlanReport *report);

/* What no plan can beat, for n budgets by one search (ls_bounder_curve): cost[k], ns; INFINITY: no
 * plan is within budget[k]. The result is the least live peak of any plan, bytes. */
int64_t ls_planner_bounds(LsPlanner *planner, const int64_t *budget, uint32_t n, double *cost);

void ls_planner_free(LsPlanner *planner);

/* The plan that computes every node once: its arena is what a budget in percent refers to. */
bool ls_plan_none(LsArena *arena, const LsDag *dag, LsPlan *out);

/* How much dearer the plan may be than the best there is: cost above the bound, over the cost of
 * every node once. */
static inline double ls_plan_gap(const LsPlan *plan, const LsPlanReport *report)
{
    double over = plan->cost - report->bound;
    return report->base_cost > 0 && over > 1e-9 * plan->cost ? over / report->base_cost : 0;
}

#endif
