/* scheduler/relaxation/second_run_cost.h -- what is paid twice unless it is kept.
 *
 * A group that is not needed is paid for by its readers (single_run_cost.h), by all of them together no
 * more than one run costs. If readers in front of a separator have run, and of what the group makes
 * nothing stays there for those behind it, one run does not serve both: those behind pay up to a
 * whole run, or have members that do without. */
#ifndef LS_SCHEDULER_RELAXATION_SECOND_RUN_COST_H
#define LS_SCHEDULER_RELAXATION_SECOND_RUN_COST_H

#include "scheduler/relaxation/single_run_cost.h"

/* Unless `tensor` stays at all separators from .. to, schedules cost so much more than the base,
 * with all others in the list. */
typedef struct LsBoundTwice {
    uint32_t tensor, from, to; /* numbers of separators */
    double cost;               /* ns */
} LsBoundTwice;

/* sep: places of the path, rising. *list: in `arena`. returns how many. */
uint32_t ls_bound_twice(LsArena *arena, const LsBoundGraph *b, const uint32_t *sep, uint32_t nsep,
                        LsBoundTwice **list);

#endif
