/* scheduler/order/place_weight_gradients.h -- chooses where weight gradients run: no other node
 * waits for them. */
#ifndef LS_SCHEDULER_ORDER_PLACE_WEIGHT_GRADIENTS_H
#define LS_SCHEDULER_ORDER_PLACE_WEIGHT_GRADIENTS_H

#include "scheduler/order/liveness.h"

/* Moves the nodes that no node waits for to where they lower the live sum, else to the end. The
 * result lies in `arena` and is valid as in run_order.h. */
LsSeq ls_seq_place_leaves(LsArena *arena, const LsProb *p, const LsSeq *seq);

#endif
