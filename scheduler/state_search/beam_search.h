/* scheduler/state_search/beam_search.h -- good schedules within a budget, from their ends: the most promising states.
 *
 * States (state_table.h) with equally many nodes left to run are compared with each other: the `width` of
 * them that have cost the least, with what lies ahead at the least and a price for the bytes that
 * they ask for, are tried further. So first runs may come in any order and anything may run again,
 * and what is tight is not left for the end. */
#ifndef LS_SCHEDULER_STATE_SEARCH_BEAM_SEARCH_H
#define LS_SCHEDULER_STATE_SEARCH_BEAM_SEARCH_H

#include "scheduler/order/liveness.h"
#include "scheduler/relaxation/group_graph.h"

typedef struct LsBeamOptions {
    int64_t budget;             /* bytes of live peak, of sizes rounded up as plans are packed */
    uint32_t width;             /* states tried of those with equally many nodes left */
    double price;               /* of asking for all of the budget: parts of a step's cost */
    double enough;              /* what costs as much is left out; INFINITY: nothing is */
} LsBeamOptions;

typedef struct LsBeamResult {
    double cost;                /* of the schedule; INFINITY: none was found */
    uint64_t states;            /* that were tried; of wide kernels as many as their work is worth */
} LsBeamResult;

/* *seq, from `arena`, is set where one was found. */
LsBeamResult ls_beam(LsArena *arena, const LsBoundGraph *b, const LsBeamOptions *options,
                     LsSeq *seq);

#endif
