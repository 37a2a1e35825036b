/* scheduler/cuts/node_times.h -- the least that each node adds to the time of any plan. */
#ifndef LS_SCHEDULER_CUTS_NODE_TIMES_H
#define LS_SCHEDULER_CUTS_NODE_TIMES_H

#include "scheduler/graph/instance.h"

/* ns by node: its own cost or, if an alternative may run instead, that of the cheapest one. A node
 * whose results nobody needs once all their readers have been replaced counts as much as that
 * replacing costs, if this is less. runs: by node, or NULL; set where the node or an alternative
 * with its results runs in every plan. */
double *ls_least_times(LsArena *arena, const LsProb *p, bool *runs);

/* ns beyond that which reader `r` takes at least without tensor t: INFINITY if nothing can stand in
 * for it. */
double ls_avoid_time(const LsProb *p, const double *least, uint32_t r, uint32_t t);

#endif
