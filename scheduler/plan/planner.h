/* scheduler/plan/planner.h -- plans a training graph within a budget. */
#ifndef LS_SCHEDULER_PLAN_PLANNER_H
#define LS_SCHEDULER_PLAN_PLANNER_H

#include "scheduler/candidates/plan_steps.h"
#include "scheduler/plan/plan_options.h"

typedef struct LsPlanRow {      /* one strategy */
    const char *name;
    bool feasible;              /* a plan of it fits the budget; then: */
    int64_t live_peak, arena;   /* of its cheapest plan that fits, bytes */
    double overhead;            /* of that plan */
    uint32_t again;             /* recomputations in that plan */
    int64_t least;              /* least arena among its plans, bytes */
    const char *note;           /* what a reader must know ("27358 lower sets"), or NULL */
} LsPlanRow;

typedef struct LsPlanOwner { uint32_t tensor; int64_t bytes; } LsPlanOwner;

/* What costs are of: plans are compared by cost only if all of it is the same. NULL, 0: not
 * said. */
typedef struct LsCostsOf {
    const char *machine;        /* its name, or "measured" */
    const char *precision;      /* of the plan: f32, bf16, ... */
    int threads;
} LsCostsOf;

typedef struct LsPlanReport {
    int64_t state_bytes;
    int64_t store_all;          /* live peak: every node once in list order, without in-place
                                 * reuse */
    const LsPlan *none;         /* the plan without recomputation: a budget in % refers to its
                                 * arena */
    int64_t none_peak, none_arena;          /* of plan `none`, bytes */
    int64_t budget;             /* the budget asked for, bytes; <= 0: unlimited */
    int64_t least;              /* least budget for which a plan was found, bytes */
    bool feasible;
    double base_cost;           /* of every needed node once (LsProb) */
    double bound;               /* lower bound on the cost of any plan within the budget, ns
                                 * (scheduler/bounds/lower_bound.h) */
    uint32_t separator;         /* the node whose first run proves the bound, or LS_NO_ID */
    int64_t least_bound;        /* lower bound on any plan's live peak, bytes; 0: unknown */
    bool impossible;            /* proven: no plan at all fits the budget */
    bool cut;                   /* the time limit ended the search before its last move */
    LsPlanRow *row; uint32_t nrow;
    char hash[17];              /* of the plan */
    /* The owners of memory at the peak of the chosen plan or, if infeasible, of the plan with the
     * least arena. */
    uint32_t peak_step;         /* number of the run in that plan */
    uint32_t peak_node;
    int64_t peak_workspace;     /* bytes */
    LsPlanOwner *owner; uint32_t nowner;    /* live tensors at the peak, largest first */
    const char *error;          /* why there is no plan: a sentence with the figures; or NULL */
    const char *costs;          /* for ls_view_json: source of the nodes' costs; or NULL */
    LsCostsOf of;               /* these costs */
    double step_ns;             /* time of a step by these costs */
    const char *against;        /* for ls_view_json: the verdict on an earlier plan (plan_diff.h);
                                 * or NULL */
    const char *ranks;          /* for ls_view_json: what processes that train together exchange, as
                                 * JSON; or NULL */
    const char *tiles;          /* for ls_view_json: values in parts, as JSON; NULL: none */
    const char *shared;         /* for ls_view_json: what an ensemble's members share in a step, as
                                 * JSON; or NULL */
    const char *adapters;       /* for ls_view_json: adapters beside full tuning, as JSON; or
                                 * NULL */
    const char *microbatches;   /* for ls_view_json: the modes of recomputation of a batch's parts,
                                 * as JSON; or NULL */
    const char *precisions;     /* for ls_view_json: the plan beside one in other types, as JSON; or
                                 * NULL */
} LsPlanReport;

/* Plans `dag`, which must be valid (ls_dag_check). Everything in *out and *report comes from
 * `arena`. Returns false, with *out untouched, if no plan fits the budget (the report has the least
 * budget that does, and what forces it) or if the strategy name is unknown. A larger budget never
 * gives a dearer plan. auto is never worse than a named strategy that it runs itself: none and chen
 * always, the DPs up to 600 lower sets, in small steps and with the optima of the formulas up to
 * 300; the limits rise with `seconds`. Notes in the rows say what was left out. */
bool ls_plan(LsArena *arena, const LsDag *dag, const LsPlanOptions *options, LsPlan *out,
             LsPlanReport *report);

/* Returns whether a strategy has that name. */
bool ls_plan_has_strategy(const char *name);

/* A planning that keeps its candidates, so that plans for many budgets cost about as much as one.
 * These plans are monotone in the budget, like those of ls_plan. */
typedef struct LsPlanner LsPlanner;

/* Makes the candidates of options->strategy, or of all strategies if options->compare is set;
 * options->budget is not used. Returns NULL if the strategy name is unknown. dag, options and arena
 * must outlast the planner. */
LsPlanner *ls_planner_new(LsArena *arena, const LsDag *dag, const LsPlanOptions *options);

/* Like ls_plan, from the candidates of the planner, which must include those of `strategy`. budget:
 * bytes of arena; <= 0: unlimited. */
bool ls_planner_ask(LsPlanner *planner, const char *strategy, int64_t budget, LsPlan *out,
                    LsPlanReport *report);

/* The same for the least arena found. */
bool ls_planner_least(LsPlanner *planner, const char *strategy, LsPlan *out,
                      LsPlanReport *report);

/* Computes lower bounds for n budgets in one search (ls_bounder_curve). cost[k]: bound on the cost
 * within budget[k], ns; INFINITY: no plan fits. Returns a lower bound on the live peak of any plan,
 * bytes. */
int64_t ls_planner_bounds(LsPlanner *planner, const int64_t *budget, uint32_t n, double *cost);

void ls_planner_free(LsPlanner *planner);

/* Makes the plan that computes every node once. A budget in percent refers to its arena. */
bool ls_plan_none(LsArena *arena, const LsDag *dag, LsPlan *out);

/* Returns how much dearer than the best plan this plan can be: its cost above the bound, over the
 * cost of every node once. */
static inline double ls_plan_gap(const LsPlan *plan, const LsPlanReport *report)
{
    double over = plan->cost - report->bound;
    return report->base_cost > 0 && over > 1e-9 * plan->cost ? over / report->base_cost : 0;
}

#endif
