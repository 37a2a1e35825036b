/* scheduler/relaxation/single_run_cost.h -- what running every needed group once costs, with what that draws in.
 *
 * The cheapest member of a needed group may read what only a group that is not needed makes; that
 * runs then, too, or dearer members do. Its readers pay for it: as much as each gains by reading
 * it, together no more than it costs. So every needed group counts for the least of what its
 * members cost with what they pay: the dual of the linear program that chooses members, by ascent
 * (as Erlenkotter 1978 for facility location). */
#ifndef LS_SCHEDULER_RELAXATION_SINGLE_RUN_COST_H
#define LS_SCHEDULER_RELAXATION_SINGLE_RUN_COST_H

#include "scheduler/relaxation/group_graph_types.h"

/* Sets b->pay. returns a lower bound on the cost of all first runs, ns. Needs b->needed. */
double ls_bound_base(LsBoundGraph *b);

/* Cost of a node and what it pays. */
double ls_bound_value(const LsBoundGraph *b, uint32_t node);

/* The least of a group's members. */
double ls_bound_least_value(const LsBoundGraph *b, uint32_t group);

#endif
