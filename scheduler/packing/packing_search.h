/* scheduler/packing/packing_search.h -- complete search for places below a capacity. */
#ifndef LS_SCHEDULER_PACKING_PACKING_SEARCH_H
#define LS_SCHEDULER_PACKING_PACKING_SEARCH_H

#include "scheduler/packing/packing_boxes.h"

typedef enum { LS_SEARCH_FOUND, LS_SEARCH_REFUTED, LS_SEARCH_CUT } LsSearchEnd;

typedef struct LsSearch LsSearch;

/* For boxes [from, to) of b: a part that shares no section with the others. */
LsSearch *ls_offsets_search_new(LsArena *arena, const LsBoxes *b, uint32_t from, uint32_t to);

/* Places them such that all end at or below cap (units, at most INT64_MAX / 4), in place[box];
 * proves that this cannot be; or gives up after about *work looks at a box in a section. Leaves
 * in *work what is left of it. */
LsSearchEnd ls_offsets_search(LsSearch *s, int64_t cap, int64_t *work, int64_t *place);

#endif
