/* scheduler/order/place_weight_gradients.h -- where the nodes run that nobody waits for: weight
 * gradients. */
#ifndef LS_SCHEDULER_ORDER_PLACE_WEIGHT_GRADIENTS_H
#define LS_SCHEDULER_ORDER_PLACE_WEIGHT_GRADIENTS_H

#include "scheduler/order/liveness.h"

/* Moves the nodes that nobody waits for to where they lower the live sum, else to the end.
 * In `arena`; valid as those of run_order.h are. */
LsSeq ls_seq_place_leaves(LsArena *arena, const LsProb *p, const LsSeq *seq);

#endif
