/* scheduler/packing/packing_repair.h -- places below a capacity for boxes too many for a complete
 * search. */
#ifndef LS_SCHEDULER_PACKING_PACKING_REPAIR_H
#define LS_SCHEDULER_PACKING_PACKING_REPAIR_H

#include "scheduler/packing/packing_boxes.h"

/* Changes place[box] of boxes [from, to) of b, where no two overlap, such that all end at or
 * below cap (units). false: not managed with about *work looks at boxes, which proves nothing;
 * place is as it was. Leaves in *work what is left of it. */
bool ls_offsets_eject(LsArena *arena, const LsBoxes *b, uint32_t from, uint32_t to, int64_t cap,
                      int64_t *work, int64_t *place);

#endif
