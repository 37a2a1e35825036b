/* scheduler/candidates/reorder_to_pack.h -- reorders runs so that they are easier to pack. */
#ifndef LS_SCHEDULER_CANDIDATES_REORDER_TO_PACK_H
#define LS_SCHEDULER_CANDIDATES_REORDER_TO_PACK_H

#include "scheduler/order/liveness.h"

/* Returns another valid order of the runs of seq, in `arena`, with the same cost and live peak, but
 * with fewer bytes near the peak where possible. Each `turn` gives another order. */
LsSeq ls_offsets_loosen(LsArena *arena, const LsProb *p, const LsSeq *seq, uint32_t turn);

#endif
