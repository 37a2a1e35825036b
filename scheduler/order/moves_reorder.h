/* scheduler/order/moves_reorder.h -- moves of runs to other places. */
#ifndef LS_SCHEDULER_ORDER_MOVES_REORDER_H
#define LS_SCHEDULER_ORDER_MOVES_REORDER_H

#include "scheduler/order/moves_parts.h"

/* Moves a random run to another place between the makers of its operands and its readers. Half of
 * the moves look at tensors idle at the peak. A weight gradient may take its update along. */
bool ls_move_shift(LsMoves *m);

/* Moves a random run to any place: its readers may then read other instances. */
bool ls_move_jump(LsMoves *m);

/* Moves a random run by at most `far` places, together with the runs on the way that it reads from
 * or that read it. Half of the moves look at tensors idle at the peak. */
bool ls_move_together(LsMoves *m, uint32_t far);

#endif
