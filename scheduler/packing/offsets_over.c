/* scheduler/packing/offsets_over.c -- see the header. A filling starts with one valley at 0 and
 * puts the box of least rank into it, so boxes that come first in every ranking get the place 0, if
 * none of them live at the same time. */
#include "scheduler/packing/offsets_over.h"

#include "scheduler/packing/packing_greedy.h"

/* Ranks the boxes of floors before the others, which keep their order. */
static void floors_first(const LsBoxes *b, uint32_t nfloor, uint32_t *box_of, uint32_t *rank)
{
    for (uint32_t k = 0; k < b->n; k++)
        box_of[rank[k]] = k;
    uint32_t next = 0;
    for (int floor = 1; floor >= 0; floor--)
        for (uint32_t r = 0; r < b->n; r++)
            if ((b->box[box_of[r]].block < nfloor) == floor)
                rank[box_of[r]] = next++;
}

int64_t ls_offsets_over(const LsBlock *block, uint32_t n, uint32_t nfloor, int64_t alignment,
                        int64_t *offset)
{
    LsArena *tmp = ls_arena_new();
    LsBoxes b;
    int64_t best = INT64_MAX;
    ls_boxes_make(tmp, block, n, alignment, &b);
    uint32_t *rank = ls_arena_alloc(tmp, b.n + 1u, sizeof *rank),
             *box_of = ls_arena_alloc(tmp, b.n + 1u, sizeof *box_of);
    int64_t *place = ls_arena_alloc(tmp, b.n + 1u, sizeof *place);
    for (uint32_t k = 0; k < n && b.peak < INT64_MAX; k++)
        offset[k] = 0;
    for (int key = 0; key < LS_FILLS && b.peak < INT64_MAX / alignment; key++) {
        ls_boxes_rank(tmp, &b, ls_fill_key[key], rank);
        floors_first(&b, nfloor, box_of, rank);
        const int64_t end = ls_offsets_fill(tmp, &b, rank, place);
        if (end >= best)
            continue;
        best = end;
        for (uint32_t k = 0; k < b.n; k++)
            offset[b.box[k].block] = place[k] * alignment;
    }
    ls_arena_free(tmp);
    return best < INT64_MAX ? best * alignment : best;
}
