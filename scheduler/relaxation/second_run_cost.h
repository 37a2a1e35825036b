/* scheduler/relaxation/second_run_cost.h -- a lower bound on the cost of a second run, unless a
 * tensor is kept.
 *
 * The readers of a group that is not needed pay for it (single_run_cost.h), all together at most
 * the cost of one run. If readers before a separator have run, and no result of the group stays
 * live there for readers behind it, one run cannot serve both. The readers behind then pay up to a
 * whole run, or have members that do not read the group. */
#ifndef LS_SCHEDULER_RELAXATION_SECOND_RUN_COST_H
#define LS_SCHEDULER_RELAXATION_SECOND_RUN_COST_H

#include "scheduler/relaxation/single_run_cost.h"

/* Unless `tensor` stays at all separators from .. to, every schedule pays `cost` above the base;
 * the entries of the list add up. */
typedef struct LsBoundTwice {
    uint32_t tensor, from, to; /* numbers of separators */
    double cost;               /* ns */
} LsBoundTwice;

/* sep: places of the path, rising. Writes *list, in `arena`, and returns its length. */
uint32_t ls_bound_twice(LsArena *arena, const LsBoundGraph *b, const uint32_t *sep, uint32_t nsep,
                        LsBoundTwice **list);

#endif
