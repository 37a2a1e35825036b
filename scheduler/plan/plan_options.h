/* scheduler/plan/plan_options.h -- what is asked of a planning. */
#ifndef LS_SCHEDULER_PLAN_PLAN_OPTIONS_H
#define LS_SCHEDULER_PLAN_PLAN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* All zeros: auto, no budget, in-place reuse on. */
typedef struct LsPlanOptions {
    const char *strategy;       /* "auto" (NULL), "none", "chen", "exact", "approx", or one of the
                                 * DPs' halves: "exact-tc", "exact-mc", "approx-tc", "approx-mc" */
    int64_t budget;             /* bytes of arena; <= 0: unlimited */
    double percent;             /* > 0: not that budget, but so much of the arena of plan "none", or
                                 * of the store-all peak; 1 byte at least */
    bool of_store_all;
    bool least;                 /* the least arena that is found, whatever the budget says */
    bool no_inplace;            /* every result gets a place of its own */
    bool no_offsets;            /* plans give no places, and the budget is one of live bytes */
    double seconds;             /* of processor time, then the search ends at the latest; <= 0: 2.
                                 * Up to there its length is counted in moves, so plans are the
                                 * same everywhere */
    uint32_t effort;            /* moves of the search in percent of the usual number; 0: 100, and
                                 * where there are more `seconds` than usual, ever more */
    bool prove;                 /* spend more on the lower bounds */
    bool unproven;              /* spend nothing on them: reports have none */
    bool compare;               /* fill the rows of all strategies, not only those asked for */
    uint32_t max_lower_sets;    /* of the exact DP; above it, it falls back on the pruned family and
                                 * says so; 0: 40000 where exact is asked for by name; 2500 within
                                 * auto and for comparison, more with more time */
    int64_t state_bytes;        /* parameters, moments, statistics: passed through to the report */
} LsPlanOptions;

#endif
