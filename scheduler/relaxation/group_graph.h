/* scheduler/relaxation/group_graph.h -- a relaxation of the graph: the properties that all its
 * schedules share.
 *
 * Nodes that can make the same tensors (a node and its alternatives) form one group. A run of any
 * member counts as a run of the group. The group costs as much as its cheapest member, reads the
 * tensors that all members read, and makes the tensors that any member makes. So bounds for groups
 * hold for every choice of alternatives. A group has the id of its first ordinary node. If members
 * read different forms of the same value, the group reads a form set (form_sets.h), whose id
 * follows those of the tensors. */
#ifndef LS_SCHEDULER_RELAXATION_GROUP_GRAPH_H
#define LS_SCHEDULER_RELAXATION_GROUP_GRAPH_H

#include "scheduler/relaxation/group_graph_types.h"

/* Allocates in `arena`. */
LsBoundGraph *ls_bound_graph_new(LsArena *arena, const LsProb *p);

/* Returns the most bytes that in-place reuse can save in a run of `node`. */
int64_t ls_bound_spared(const LsProb *p, uint32_t node);

/* Returns whether in-place reuse of `pair` is possible. */
bool ls_bound_pair_fits(const LsProb *p, LsDagPair pair);

#endif
