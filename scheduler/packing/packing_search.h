/* scheduler/packing/packing_search.h -- complete search for places below a capacity. */
#ifndef LS_SCHEDULER_PACKING_PACKING_SEARCH_H
#define LS_SCHEDULER_PACKING_PACKING_SEARCH_H

#include "scheduler/packing/packing_boxes.h"

typedef enum { LS_SEARCH_FOUND, LS_SEARCH_REFUTED, LS_SEARCH_CUT } LsSearchEnd;

typedef struct LsSearch LsSearch;

/* Makes a search for the boxes [from, to) of b, which share no section with the other boxes. */
LsSearch *ls_offsets_search_new(LsArena *arena, const LsBoxes *b, uint32_t from, uint32_t to);

/* Writes place[box] so that all boxes end at or below cap (units, at most INT64_MAX / 4); or proves
 * that impossible; or gives up after about *work looks at a box in a section. Subtracts the work
 * done from *work. */
LsSearchEnd ls_offsets_search(LsSearch *s, int64_t cap, int64_t *work, int64_t *place);

#endif
