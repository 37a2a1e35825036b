/* scheduler/packing/packing_greedy.h -- greedy placement: the lowest valley first. */
#ifndef LS_SCHEDULER_PACKING_PACKING_GREEDY_H
#define LS_SCHEDULER_PACKING_PACKING_GREEDY_H

#include "scheduler/packing/packing_boxes.h"

/* Rankings that are worth a filling each, as keys of ls_boxes_rank, the best one first. */
enum { LS_FILLS = 6 };
extern const char *const ls_fill_key[LS_FILLS];

/* Puts into the lowest valley of the skyline the box of least rank that fits between its walls, or
 * raises the valley to the lower wall if none fits, until all boxes are placed. Writes the place of
 * each box, in units; returns the largest end. Takes O(n log n) plus the look-up of the boxes,
 * which is fast in practice. Every section's total must be below INT64_MAX. */
int64_t ls_offsets_fill(LsArena *arena, const LsBoxes *b, const uint32_t *rank, int64_t *place);

#endif
