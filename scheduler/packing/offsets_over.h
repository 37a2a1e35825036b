/* scheduler/packing/offsets_over.h -- offsets for blocks over bytes that something else takes at
 * some steps. */
#ifndef LS_SCHEDULER_PACKING_OFFSETS_OVER_H
#define LS_SCHEDULER_PACKING_OFFSETS_OVER_H

#include "scheduler/packing/packing_block.h"

/* Like ls_offsets, by greedy fillings alone. The first `nfloor` blocks live at different steps, and
 * get the offset 0. Returns the largest end, bytes, rounded up to the alignment; INT64_MAX, and no
 * offsets, if the blocks of one step exceed 63 bits. */
int64_t ls_offsets_over(const LsBlock *block, uint32_t n, uint32_t nfloor, int64_t alignment,
                        int64_t *offset);

#endif
