/* scheduler/graph/backward_start.h -- where the forward part ends and the backward part begins. */
#ifndef LS_SCHEDULER_GRAPH_BACKWARD_START_H
#define LS_SCHEDULER_GRAPH_BACKWARD_START_H

#include "scheduler/graph/instance.h"

/* Marks the first needed backward node, and every needed node that waits for it: the part behind
 * the turn. back: p->n flags, all false before. false when there is no backward node. */
bool ls_turn_mark(const LsProb *p, bool *back);

#endif
