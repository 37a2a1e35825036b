/* scheduler/joint.h -- room below a target by making many tensors anew, chosen together.
 *
 * Values that were made early often need the same operands to be made again: one alone is dear,
 * many together are not. At a run above the target, what is idle is kept, or made anew before it
 * is read next, with what that needs, which is kept or made anew as well; for a price per kept
 * byte the best choice is a minimum cut, as at the turn from forward to backward (closure.c), but
 * at any run of any sequence. A byte counts by how many of the runs above the target it is idle
 * at. */
#ifndef LS_SCHEDULER_JOINT_H
#define LS_SCHEDULER_JOINT_H

#include "scheduler/limit.h"
#include "scheduler/moves.h"

/* Cost, and `weight` for every byte above the target at the peak and an eighth at every run. */
double ls_moves_energy(const LsMoves *m, double weight);

/* Tries a row of prices at the run and makes the change that leaves the least energy; false, and
 * nothing has changed, if none lowers it. */
bool ls_move_relieve_jointly(LsMoves *m, uint32_t run, double weight);

/* Brings the tape towards the target, by joint relief and new orders in turn. hot: rise of energy
 * that a new order may often bring at first. Makes its changes final. false: the limit cut it. */
bool ls_moves_make_room(LsMoves *m, double weight, double hot, LsLimit *limit);

#endif
