/* scheduler/state_search/state_heap.h -- the queue of open states. */
#ifndef LS_SCHEDULER_STATE_SEARCH_STATE_HEAP_H
#define LS_SCHEDULER_STATE_SEARCH_STATE_HEAP_H

#include "base/arena.h"

/* A heap of states, the least first. The tie-break is the higher cost so far: that state is further
 * on. */
typedef struct LsTailEntry { double least; uint32_t state; double cost; } LsTailEntry;
typedef struct LsTailHeap { LsTailEntry *entry; uint32_t n, room; } LsTailHeap;

void ls_tail_heap_put(LsTailHeap *h, LsArena *arena, LsTailEntry e);
LsTailEntry ls_tail_heap_take(LsTailHeap *h);

#endif
