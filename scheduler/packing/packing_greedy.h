/* scheduler/packing/packing_greedy.h -- greedy placement: the lowest valley first. */
#ifndef LS_SCHEDULER_PACKING_PACKING_GREEDY_H
#define LS_SCHEDULER_PACKING_PACKING_GREEDY_H

#include "scheduler/packing/packing_boxes.h"

/* Fills the lowest valley of the skyline with the box of the least rank that fits between its
 * walls, raises it to the lower wall when none does, and goes on until all boxes are placed.
 * Writes a place in units by box; returns the largest end. O(n log n) but for the look-up of the
 * box, which is fast in practice. Every section's total must be below INT64_MAX. */
int64_t ls_offsets_fill(LsArena *arena, const LsBoxes *b, const uint32_t *rank, int64_t *place);

#endif
