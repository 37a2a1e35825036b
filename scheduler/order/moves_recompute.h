/* scheduler/order/moves_recompute.h -- moves that make something again, whatever that is good for.
 * */
#ifndef LS_SCHEDULER_ORDER_MOVES_RECOMPUTE_H
#define LS_SCHEDULER_ORDER_MOVES_RECOMPUTE_H

#include "scheduler/order/moves_parts.h"

/* Makes what a random run reads again in front of it, unless that costs more than `most`. */
bool ls_move_again_for_any(LsMoves *m, double most);
/* Likewise for the next reader of something idle at the peak; all: with what it takes that is not
 * in memory either. */
bool ls_move_again_for_peak(LsMoves *m, double most);
bool ls_move_all_again_for_peak(LsMoves *m, double most);

#endif
