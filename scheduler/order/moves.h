/* scheduler/order/moves.h -- small changes of a tape that keep it a valid sequence.
 *
 * Every move returns false when it could not be made; the tape may then be anything: the caller
 * undoes it. A move that was made may still leave bad reads (t->bad > 0), which the caller takes
 * for a failure too. */
#ifndef LS_SCHEDULER_ORDER_MOVES_H
#define LS_SCHEDULER_ORDER_MOVES_H

#include "scheduler/order/moves_alternative.h"
#include "scheduler/order/moves_recompute.h"
#include "scheduler/order/moves_reorder.h"

/* Makes a tensor that is idle at the peak anew before it is read next, with what that takes, or
 * lets readers take kernels that do without it: the cheapest per byte of `tries` random choices. */
bool ls_move_relieve(LsMoves *m, uint32_t tries);

/* Takes back the run, whose readers go on with what was made before, and all runs that thereby
 * nobody needs. */
bool ls_move_drop(LsMoves *m, uint32_t run);

/* Whether what the run makes has been made before. */
bool ls_moves_can_drop(const LsMoves *m, uint32_t run);

/* A random run that ls_move_drop can take back, or LS_TAPE_END after a few tries. */
uint32_t ls_moves_extra(LsMoves *m);

/* Takes back a random run, and makes room for what that holds in other places, each the best of
 * `tries`. */
bool ls_move_trade(LsMoves *m, uint32_t tries);

#endif
