/* scheduler/order/moves.h -- small changes of a tape that keep it a valid sequence.
 *
 * A move returns false if it could not be made. The tape is then undefined, and the caller undoes
 * the changes. A move that returns true may still leave bad reads (t->bad > 0); the caller treats
 * these as a failure too. */
#ifndef LS_SCHEDULER_ORDER_MOVES_H
#define LS_SCHEDULER_ORDER_MOVES_H

#include "scheduler/order/moves_alternative.h"
#include "scheduler/order/moves_recompute.h"
#include "scheduler/order/moves_reorder.h"

/* Shortens the live range of a tensor that is idle at the peak: recomputes it, and what it needs,
 * before its next read, or lets its readers use kernels that do not read it. Takes the cheapest per
 * byte of `tries` random choices. */
bool ls_move_relieve(LsMoves *m, uint32_t tries);

/* Removes the run and all runs that only it needs. Its readers read the previous instance. */
bool ls_move_drop(LsMoves *m, uint32_t run);

/* Returns whether the run may go: it need not stay, and earlier runs made all its results. */
bool ls_moves_can_drop(const LsMoves *m, uint32_t run);

/* Returns a random run that ls_move_drop can remove, or LS_TAPE_END after a few tries. */
uint32_t ls_moves_extra(LsMoves *m);

/* Removes a random recomputation, then makes room at other places for the longer live ranges, each
 * time by the best of `tries`. */
bool ls_move_trade(LsMoves *m, uint32_t tries);

#endif
