/* scheduler/state_search/beam_search.h -- beam search for good schedules within a budget, from
 * their ends.
 *
 * States (state_table.h) with equally many nodes left to run compete. The search expands the
 * `width` best by cost so far, a lower bound on the cost ahead, and a price for the bytes that the
 * state asks for. So first runs may come in any order, any node may run again, and tight memory is
 * not left for the end. */
#ifndef LS_SCHEDULER_STATE_SEARCH_BEAM_SEARCH_H
#define LS_SCHEDULER_STATE_SEARCH_BEAM_SEARCH_H

#include "scheduler/order/liveness.h"
#include "scheduler/relaxation/group_graph.h"

typedef struct LsBeamOptions {
    int64_t budget;             /* bytes of live peak, with sizes rounded up as in packing */
    uint32_t width;             /* states expanded per number of nodes left */
    double price;               /* of a state that asks for the whole budget, as a fraction of a
                                 * step's cost */
    double enough;              /* states of this cost or more are left out; INFINITY: none is */
} LsBeamOptions;

typedef struct LsBeamResult {
    double cost;                /* of the schedule; INFINITY: none was found */
    uint64_t states;            /* states expanded; those of wide kernels count by their work */
} LsBeamResult;

/* Sets *seq, from `arena`, if a schedule was found. */
LsBeamResult ls_beam(LsArena *arena, const LsBoundGraph *b, const LsBeamOptions *options,
                     LsSeq *seq);

#endif
