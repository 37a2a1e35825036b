/* scheduler/relaxation/some_tensors.h -- the problem with only some of its tensors.
 *
 * The others are always there and take no bytes, so what only makes them does not run. Every
 * schedule of the whole problem, without those runs, is a schedule of this one with no higher peak.
 * So lower bounds of the peak hold for the whole problem, and the few tensors that matter make a
 * graph that is small enough for a search of all schedules. */
#ifndef LS_SCHEDULER_RELAXATION_SOME_TENSORS_H
#define LS_SCHEDULER_RELAXATION_SOME_TENSORS_H

#include "scheduler/relaxation/group_graph.h"

/* counts: by tensor of the whole problem: it is one of them. Allocates in `arena`. */
LsProb *ls_some_tensors(LsArena *arena, const LsBoundGraph *b, const bool *counts);

#endif
