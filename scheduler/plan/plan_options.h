/* scheduler/plan/plan_options.h -- the options of a planning. */
#ifndef LS_SCHEDULER_PLAN_PLAN_OPTIONS_H
#define LS_SCHEDULER_PLAN_PLAN_OPTIONS_H

#include "scheduler/graph/memory_budget.h"

#include <stdbool.h>
#include <stdint.h>

/* All zeros: auto, no budget, in-place reuse on. */
typedef struct LsPlanOptions {
    const char *strategy;       /* a name of strategy_names.h; NULL: "auto" */
    LsBudget budget;            /* of an arena */
    bool no_inplace;            /* no result takes the place of an operand */
    bool no_offsets;            /* plans have no offsets, and the budget limits live bytes */
    double seconds;             /* limit of processor time, after which the search ends; <= 0: 2.
                                 * Within it the length of the search is counted in moves, so plans
                                 * are the same everywhere */
    uint32_t effort;            /* moves of the search, percent of the usual number; 0: 100, and
                                 * more while `seconds` beyond the usual ones are left */
    bool prove;                 /* spend more effort on the lower bounds */
    bool unproven;              /* spend none: reports have no lower bounds */
    bool compare;               /* fill the rows of all strategies, not only of those asked for */
    uint32_t max_lower_sets;    /* most for the exact DP; above it the DP uses the pruned family and
                                 * says so. 0: 40000 if exact is asked for by name, else 2500 (auto,
                                 * compare), more with more time */
    int64_t state_bytes;        /* parameters, moments, statistics: passed through to the report */
} LsPlanOptions;

#endif
