/* scheduler/graph/fusion_choice.h -- chooses the kernels that compute operands themselves, before
 * planning. */
#ifndef LS_SCHEDULER_GRAPH_FUSION_CHOICE_H
#define LS_SCHEDULER_GRAPH_FUSION_CHOICE_H

#include "scheduler/graph/instance.h"

/* The problem with alternatives in use where that costs less, or little: `price` per byte that is
 * then never written (1: all bytes cost what running everything does). p itself where nothing
 * pays; else from `arena`. */
const LsProb *ls_variant(LsArena *arena, const LsProb *p, double price);

#endif
