/* scheduler/relaxation/group_graph.h -- what every schedule of a graph has in common, whatever its order.
 *
 * Nodes that can make the same tensors (alternatives and what they replace) are one group: a run
 * of any of them counts as a run of the group, which costs what the cheapest costs, reads what
 * all of them read and makes what any of them makes. So what holds for groups holds for every
 * choice of alternatives. A group has the id of its first ordinary node. Where members read
 * different forms of the same value, the group reads a form set (form_sets.h), which has an id
 * behind those of the tensors. */
#ifndef LS_SCHEDULER_RELAXATION_GROUP_GRAPH_H
#define LS_SCHEDULER_RELAXATION_GROUP_GRAPH_H

#include "scheduler/relaxation/group_graph_types.h"

/* Uses `arena` for all it makes. */
LsBoundGraph *ls_bound_graph_new(LsArena *arena, const LsProb *p);

/* Bytes that a run of `node` can spare by in-place reuse, at the most. */
int64_t ls_bound_spared(const LsProb *p, uint32_t node);

/* Whether `pair` of a node may be used. */
bool ls_bound_pair_fits(const LsProb *p, LsDagPair pair);

#endif
