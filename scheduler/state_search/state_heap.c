/* scheduler/state_search/state_heap.c -- a binary heap of states. */
#include "scheduler/state_search/state_heap.h"

#include <stdbool.h>

static bool earlier(const LsTailEntry *a, const LsTailEntry *b)
{
    if (a->least != b->least)
        return a->least < b->least;
    return a->cost != b->cost ? a->cost > b->cost : a->state < b->state;
}

void ls_tail_heap_put(LsTailHeap *h, LsArena *arena, LsTailEntry e)
{
    h->entry = ls_arena_grow(arena, h->entry, h->n, h->n + 1u, sizeof *h->entry, &h->room);
    uint32_t at = h->n++;
    for (; at > 0 && earlier(&e, &h->entry[(at - 1) / 2]); at = (at - 1) / 2)
        h->entry[at] = h->entry[(at - 1) / 2];
    h->entry[at] = e;
}

LsTailEntry ls_tail_heap_take(LsTailHeap *h)
{
    LsTailEntry top = h->entry[0], last = h->entry[--h->n];
    uint32_t at = 0;
    for (uint32_t kid; (kid = 2 * at + 1) < h->n; at = kid) {
        kid += kid + 1 < h->n && earlier(&h->entry[kid + 1], &h->entry[kid]);
        if (!earlier(&h->entry[kid], &last))
            break;
        h->entry[at] = h->entry[kid];
    }
    h->entry[at] = last;
    return top;
}
