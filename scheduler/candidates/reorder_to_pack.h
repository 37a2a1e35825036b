/* scheduler/candidates/reorder_to_pack.h -- the same runs in an order that is easier to pack. */
#ifndef LS_SCHEDULER_CANDIDATES_REORDER_TO_PACK_H
#define LS_SCHEDULER_CANDIDATES_REORDER_TO_PACK_H

#include "scheduler/order/liveness.h"

/* Another order of the runs of seq, in `arena`: as valid, as dear, and of the same live peak, but
 * with fewer bytes near it where that can be. Each `turn` gives another one. */
LsSeq ls_offsets_loosen(LsArena *arena, const LsProb *p, const LsSeq *seq, uint32_t turn);

#endif
