/* scheduler/packing/packing_boxes.h -- the packing problem behind the offsets: boxes in units of the
 * alignment over sections of time.
 *
 * A section is a greatest set of blocks that are there at one step; sections are numbered along
 * time, and a block is in consecutive ones. Two blocks meet in time exactly when they share a
 * section, so nothing else of the steps matters, and there are at most as many sections as
 * blocks. */
#ifndef LS_SCHEDULER_PACKING_PACKING_BOXES_H
#define LS_SCHEDULER_PACKING_PACKING_BOXES_H

#include <stdbool.h>

#include "base/arena.h"
#include "scheduler/packing/packing_block.h"

typedef struct LsBox {
    int64_t size;               /* units, > 0 */
    uint32_t from, to;          /* first and last section */
    uint32_t full;              /* last section that all of it is in; behind it there is */
    int64_t rest;               /* only the lower end, of so many units; full = to: size */
    uint32_t block;             /* index of the block */
} LsBox;

typedef struct LsBoxes {
    LsBox *box; uint32_t n;     /* by rising from, falling to; none of no size */
    uint32_t nsection;
    int64_t *total;             /* by section: units; INT64_MAX: more than that */
    int64_t peak;               /* the largest total */
    double *area;               /* by box: units times steps */
} LsBoxes;

void ls_boxes_make(LsArena *arena, const LsBlock *block, uint32_t n, int64_t alignment,
                   LsBoxes *out);

/* Boxes [a, end) from the first box a that share no section with those behind them. */
uint32_t ls_boxes_part(const LsBoxes *b, uint32_t a);

/* How boxes are preferred to one another: by falling W sections, A area, T largest total where it
 * is, Z size, S start in time (rising), in the order of the letters of `key`. rank[box]: 0 is
 * first. */
void ls_boxes_rank(LsArena *arena, const LsBoxes *b, const char *key, uint32_t *rank);

/* Units of the box in a section that it is in. */
static inline int64_t ls_box_at(const LsBox *x, uint32_t section)
{
    return section <= x->full ? x->size : x->rest;
}

/* a + b, at most INT64_MAX; both >= 0. */
static inline int64_t ls_add(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

#endif
