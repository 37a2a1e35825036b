/* scheduler/packing/packing_repair.h -- local search for places below a capacity, for too many
 * boxes for a complete search. */
#ifndef LS_SCHEDULER_PACKING_PACKING_REPAIR_H
#define LS_SCHEDULER_PACKING_PACKING_REPAIR_H

#include "scheduler/packing/packing_boxes.h"

/* Changes place[box] of the boxes [from, to) of b, which do not overlap, so that all end at or
 * below cap (units). Returns false, with place unchanged, if about *work looks at boxes did not
 * suffice; this proves nothing. Subtracts the work done from *work. */
bool ls_offsets_eject(LsArena *arena, const LsBoxes *b, uint32_t from, uint32_t to, int64_t cap,
                      int64_t *work, int64_t *place);

#endif
