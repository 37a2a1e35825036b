/* scheduler/state_search/best_first_search.h -- the least cost within a budget, or the least peak, by trying all
 * schedules from their ends.
 *
 * The cheapest state first (state_table.h): what has not been tried when the search ends costs at least
 * as much as the next state, so any end proves something. */
#ifndef LS_SCHEDULER_STATE_SEARCH_BEST_FIRST_SEARCH_H
#define LS_SCHEDULER_STATE_SEARCH_BEST_FIRST_SEARCH_H

#include "scheduler/order/liveness.h"
#include "scheduler/relaxation/group_graph.h"

typedef struct LsOptimum {
    double value;               /* no schedule has less: ns, or bytes; INFINITY: there is none */
    bool exact;                 /* some schedule has just that */
    uint32_t states;            /* that were tried */
    uint64_t work;              /* as search_limit.h counts it */
} LsOptimum;

/* The least cost of a schedule within `budget` bytes of live peak. enough: no cost of interest is
 * as high (INFINITY: all are); most: states to try, and usual ones whose work may be done. */
LsOptimum ls_optimum_cost(const LsBoundGraph *b, int64_t budget, double enough, uint32_t most);

/* The least live peak of any schedule, bytes; known: a lower bound on it, at least the bytes that
 * every node takes. */
LsOptimum ls_optimum_peak(const LsBoundGraph *b, int64_t known, uint32_t most);

/* Likewise of any that runs `node`, whatever else it does: a bound for large graphs. */
LsOptimum ls_optimum_peak_of(const LsBoundGraph *b, uint32_t node, int64_t known, uint32_t most);

/* A schedule of the least cost within `budget` bytes; budget <= 0: of the least peak. Its bytes
 * are those of liveness.h, of sizes rounded up as plans are packed. enough: as in ls_optimum_cost.
 * Comes from `arena`; *seq is set where the result is exact and there is one. */
LsOptimum ls_optimum_plan(LsArena *arena, const LsBoundGraph *b, int64_t budget, double enough,
                          uint32_t most, LsSeq *seq);

typedef struct LsOptimumPart {
    const bool *have;           /* by tensor: there at the beginning, if it is asked for */
    const bool *barred;         /* by node: does not run */
    int64_t budget;             /* bytes */
} LsOptimumPart;

/* Likewise of a part of a schedule. */
LsOptimum ls_optimum_part(LsArena *arena, const LsBoundGraph *b, const LsOptimumPart *part,
                          double enough, uint32_t most, LsSeq *seq);

#endif
