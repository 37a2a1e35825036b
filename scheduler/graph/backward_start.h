/* scheduler/graph/backward_start.h -- finds the turn, where the backward part begins. */
#ifndef LS_SCHEDULER_GRAPH_BACKWARD_START_H
#define LS_SCHEDULER_GRAPH_BACKWARD_START_H

#include "scheduler/graph/instance.h"

/* Marks the part behind the turn: the first needed backward node and every needed node that waits
 * for it. back: p->n flags, all false on entry. Returns false if there is no backward node. */
bool ls_turn_mark(const LsProb *p, bool *back);

#endif
