/* scheduler/bound_base.h -- what running every needed group once costs, with what that draws in. */
#ifndef LS_SCHEDULER_BOUND_BASE_H
#define LS_SCHEDULER_BOUND_BASE_H

#include "scheduler/bound_graph.h"

/* The cheapest member of each needed group may read what only a group that is not needed makes;
 * that runs then, too, or dearer members do. A lower bound on the cost of all first runs, ns: the
 * dual of the linear program that chooses members, by ascent (as Erlenkotter 1978 for facility
 * location). Needs b->needed. */
double ls_bound_base(const LsBoundGraph *b);

#endif
