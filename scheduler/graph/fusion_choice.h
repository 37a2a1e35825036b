/* scheduler/graph/fusion_choice.h -- chooses the kernels that compute operands themselves, before
 * planning. */
#ifndef LS_SCHEDULER_GRAPH_FUSION_CHOICE_H
#define LS_SCHEDULER_GRAPH_FUSION_CHOICE_H

#include "scheduler/graph/instance.h"

/* Returns a variant of p, from `arena`, that uses alternatives where these cost less, or at most
 * `price` per byte that they save writing (1: all bytes together cost as much as running
 * everything). Returns p if none pays. */
const LsProb *ls_variant(LsArena *arena, const LsProb *p, double price);

#endif
