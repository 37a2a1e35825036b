/* scheduler/packing/packing_boxes.h -- the packing problem: boxes, with sizes in units of the
 * alignment, over sections of time.
 *
 * A section is a maximal set of blocks that live at one step. Sections are numbered along time, and
 * each block lies in consecutive sections. Two blocks overlap in time exactly when they share a
 * section, so nothing else about the steps matters. There are at most as many sections as
 * blocks. */
#ifndef LS_SCHEDULER_PACKING_PACKING_BOXES_H
#define LS_SCHEDULER_PACKING_PACKING_BOXES_H

#include <stdbool.h>

#include "base/arena.h"
#include "scheduler/packing/packing_block.h"

typedef struct LsBox {
    int64_t size;               /* units, > 0 */
    uint32_t from, to;          /* first and last section */
    uint32_t full;              /* last section with the whole box */
    int64_t rest;               /* units of its lower end in later sections; full = to: size */
    uint32_t block;             /* index of its block */
} LsBox;

typedef struct LsBoxes {
    LsBox *box; uint32_t n;     /* by rising from, falling to; no box is empty */
    uint32_t nsection;
    int64_t *total;             /* by section: units; INT64_MAX: more than that */
    int64_t peak;               /* the largest total */
    double *area;               /* by box: units times steps */
} LsBoxes;

void ls_boxes_make(LsArena *arena, const LsBlock *block, uint32_t n, int64_t alignment,
                   LsBoxes *out);

/* Returns the end of the part [a, end) that starts at box a: its boxes share no section with later
 * boxes. */
uint32_t ls_boxes_part(const LsBoxes *b, uint32_t a);

/* Ranks the boxes by the letters of `key`, in order, each falling: W number of sections, A area, T
 * largest total of its sections, Z size; S (rising) start in time. rank[box]: 0 is first. */
void ls_boxes_rank(LsArena *arena, const LsBoxes *b, const char *key, uint32_t *rank);

/* Returns the units of the box in a section that it lies in. */
static inline int64_t ls_box_at(const LsBox *x, uint32_t section)
{
    return section <= x->full ? x->size : x->rest;
}

/* Returns a + b, capped at INT64_MAX; both >= 0. */
static inline int64_t ls_add(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

#endif
