/* scheduler/order/run_order.h -- sequences of runs for a whole step, with backward part and
 * updates. */
#ifndef LS_SCHEDULER_ORDER_RUN_ORDER_H
#define LS_SCHEDULER_ORDER_RUN_ORDER_H

#include "scheduler/lower_sets/lower_set.h"
#include "scheduler/order/liveness.h"

/* These functions return sequences in `arena`. All are valid: every tensor is made before it is
 * read, updates come after all readers, no stuck node runs twice, and every node that must run
 * does. */

/* Returns every needed node once, in list order. */
LsSeq ls_seq_plain(LsArena *arena, const LsProb *p);

/* The canonical strategy of the lower sets cut[0] < ... < cut[ncut-1] = everything: forward, block
 * after block; then backward, the last block first. Each block's values are recomputed except those
 * that its boundary kept. The last block is not recomputed, as nothing forces it. Recomputation
 * that no run reads is dropped. */
LsSeq ls_seq_canonical(LsArena *arena, const LsForward *f, const uint64_t *const cut[],
                       uint32_t ncut);

/* Drops runs whose results are not read before they are made again. */
void ls_seq_drop_dead(LsArena *scratch, const LsProb *p, LsSeq *seq);

/* Places every update right after the last run that reads what it changes, and adds missing
 * updates. seq must have room for them. */
void ls_seq_place_updates(LsArena *scratch, const LsProb *p, LsSeq *seq);

#endif
