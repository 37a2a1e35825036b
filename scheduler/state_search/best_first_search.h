/* scheduler/state_search/best_first_search.h -- the least cost within a budget, or the least peak,
 * by a best-first search over all schedules from their ends.
 *
 * The cheapest state is expanded first (state_table.h). When the search ends, every schedule not
 * tried costs at least as much as the next state, so a cut search still proves a lower bound. */
#ifndef LS_SCHEDULER_STATE_SEARCH_BEST_FIRST_SEARCH_H
#define LS_SCHEDULER_STATE_SEARCH_BEST_FIRST_SEARCH_H

#include "scheduler/order/liveness.h"
#include "scheduler/relaxation/group_graph.h"

typedef struct LsOptimum {
    double value;               /* lower bound for every schedule, ns or bytes; INFINITY: there is
                                 * no schedule */
    bool exact;                 /* some schedule attains it */
    uint32_t states;            /* states expanded */
    uint64_t work;              /* as search_limit.h counts it */
} LsOptimum;

/* Finds the least cost of a schedule within `budget` bytes of live peak. enough: the search ends at
 * this cost (INFINITY: never); most: limit of states, or of work in usual states. */
LsOptimum ls_optimum_cost(const LsBoundGraph *b, int64_t budget, double enough, uint32_t most);

/* Finds the least live peak of any schedule, bytes. known: a lower bound on it, at least the bytes
 * that each node takes while it runs. */
LsOptimum ls_optimum_peak(const LsBoundGraph *b, int64_t known, uint32_t most);

/* The same for any schedule that runs `node`, whatever else it runs: a lower bound for large
 * graphs. */
LsOptimum ls_optimum_peak_of(const LsBoundGraph *b, uint32_t node, int64_t known, uint32_t most);

/* Finds a schedule of least cost within `budget` bytes; budget <= 0: of least peak. Bytes count as
 * in liveness.h, with sizes rounded up as in packing. enough: as in ls_optimum_cost. Sets *seq,
 * from `arena`, if the result is exact and a schedule exists. */
LsOptimum ls_optimum_plan(LsArena *arena, const LsBoundGraph *b, int64_t budget, double enough,
                          uint32_t most, LsSeq *seq);

typedef struct LsOptimumPart {
    const bool *have;           /* by tensor: available at the beginning if asked for */
    const bool *barred;         /* by node: may not run */
    int64_t budget;             /* bytes */
} LsOptimumPart;

/* The same for a part of a schedule. */
LsOptimum ls_optimum_part(LsArena *arena, const LsBoundGraph *b, const LsOptimumPart *part,
                          double enough, uint32_t most, LsSeq *seq);

#endif
