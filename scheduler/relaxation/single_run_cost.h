/* scheduler/relaxation/single_run_cost.h -- a lower bound on the cost of one run of every needed
 * group and of the groups these require.
 *
 * The cheapest member of a needed group may read a tensor that only a group that is not needed
 * makes. Then that group runs too, or a dearer member runs. The readers of the group pay for it:
 * each at most its gain from reading, together at most the cost of the group. So every needed group
 * counts the least cost of a member plus its payments. This is the dual of the linear program that
 * chooses members, solved by dual ascent (as Erlenkotter 1978 for facility location). */
#ifndef LS_SCHEDULER_RELAXATION_SINGLE_RUN_COST_H
#define LS_SCHEDULER_RELAXATION_SINGLE_RUN_COST_H

#include "scheduler/relaxation/group_graph_types.h"

/* Sets b->pay. Returns a lower bound on the cost of all first runs, ns. b->needed must be set. */
double ls_bound_base(LsBoundGraph *b);

/* Returns the cost of a node plus its payments, ns. */
double ls_bound_value(const LsBoundGraph *b, uint32_t node);

/* Returns the least such value of a group's members. */
double ls_bound_least_value(const LsBoundGraph *b, uint32_t group);

#endif
