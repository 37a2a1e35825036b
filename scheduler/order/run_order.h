/* scheduler/order/run_order.h -- full computation sequences, backward and updates included. */
#ifndef LS_SCHEDULER_ORDER_RUN_ORDER_H
#define LS_SCHEDULER_ORDER_RUN_ORDER_H

#include "scheduler/lower_sets/lower_set.h"
#include "scheduler/order/liveness.h"

/* What follows returns sequences in `arena`. All are valid: every read has been made before,
 * updates come after all readers, nothing stuck runs twice and everything that must has run. */

/* Every needed node once, in the order of the list. */
LsSeq ls_seq_plain(LsArena *arena, const LsProb *p);

/* The canonical strategy of the lower sets cut[0] < ... < cut[ncut-1] = everything: forward,
 * block after block; then backward, the last block first, each block's values made again but for
 * those its boundary kept. The last block is not made again: nothing forces it. Recomputation
 * that nobody reads is dropped. */
LsSeq ls_seq_canonical(LsArena *arena, const LsForward *f, const uint64_t *const cut[],
                       uint32_t ncut);

/* Drops runs whose results nobody reads before they are made again. */
void ls_seq_drop_dead(LsArena *scratch, const LsProb *p, LsSeq *seq);

/* Puts the updates, there already or not, right behind the last run of whoever reads what they
 * change. Needs room for them in seq. */
void ls_seq_place_updates(LsArena *scratch, const LsProb *p, LsSeq *seq);

#endif
