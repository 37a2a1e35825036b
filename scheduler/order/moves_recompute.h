/* scheduler/order/moves_recompute.h -- moves that recompute a tensor without knowing whether that
 * pays. */
#ifndef LS_SCHEDULER_ORDER_MOVES_RECOMPUTE_H
#define LS_SCHEDULER_ORDER_MOVES_RECOMPUTE_H

#include "scheduler/order/moves_parts.h"

/* Recomputes an operand of a random run in front of that run, unless the cost exceeds `most`. */
bool ls_move_again_for_any(LsMoves *m, double most);
/* The same for the next reader of a tensor idle at the peak; all: with the operands that are not in
 * memory either. */
bool ls_move_again_for_peak(LsMoves *m, double most);
bool ls_move_all_again_for_peak(LsMoves *m, double most);

#endif
