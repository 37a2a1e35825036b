/* scheduler/order/moves_reorder.h -- moves of runs to other places. */
#ifndef LS_SCHEDULER_ORDER_MOVES_REORDER_H
#define LS_SCHEDULER_ORDER_MOVES_REORDER_H

#include "scheduler/order/moves_parts.h"

/* Moves a random run to another place between what it reads and who reads it; one in two looks
 * at what is idle at the peak. A weight gradient may take its update along. */
bool ls_move_shift(LsMoves *m);

/* Moves a random run to anywhere: readers may go on with something else than before. */
bool ls_move_jump(LsMoves *m);

/* Moves a random run by at most `far` places with the runs on the way that it reads, or that read
 * it; one in two looks at what is idle at the peak. */
bool ls_move_together(LsMoves *m, uint32_t far);

#endif
