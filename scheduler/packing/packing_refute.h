/* scheduler/packing/packing_refute.h -- proofs that open boxes cannot be placed below a
 * capacity. */
#ifndef LS_SCHEDULER_PACKING_PACKING_REFUTE_H
#define LS_SCHEDULER_PACKING_PACKING_REFUTE_H

#include "scheduler/packing/packing_boxes.h"

typedef struct LsOpenBox {      /* not yet placed */
    int64_t least;              /* the skyline below it: where it rests if placed next */
    uint32_t box;
    bool passed;                /* other boxes took the places where it could rest, so it must rest
                                 * on a box that is placed later */
} LsOpenBox;

/* Open boxes of one part of time, by falling `least`. */
typedef struct LsOpenList {
    LsOpenBox *open; uint32_t n;
    uint32_t from, to;          /* their sections */
} LsOpenList;

typedef struct LsSpan { uint32_t from, to; } LsSpan;    /* sections; from > to: none */

static inline LsSpan ls_span_join(LsSpan a, LsSpan b)
{
    if (a.from > a.to)
        return b;
    if (b.from > b.to)
        return a;
    return (LsSpan){a.from < b.from ? a.from : b.from, a.to > b.to ? a.to : b.to};
}

typedef struct LsRefuter {
    const LsBoxes *b;
    int64_t cap;                /* units */
    int64_t *sum, *end, *end2;  /* by section, of the open boxes: sum of sizes; least and second
                                 * least end */
    uint32_t *who;              /* by section: the box with the least end */
    LsOpenBox *raised;          /* scratch: the list with inferred values of `least` */
    LsSpan *by;                 /* by box: the sections that raised it */
    uint32_t most;              /* a section with the largest sum */
    LsSpan why;                 /* sections that prove the last refutation */
    int64_t work;               /* boxes and sections examined so far */
} LsRefuter;

LsRefuter ls_refuter(LsArena *arena, const LsBoxes *b);

/* Returns the largest sum of open boxes over the sections of the list; sets r->most to that
 * section. */
int64_t ls_refuter_sums(LsRefuter *r, const LsOpenList *l);

/* Returns whether the boxes, none of which may lie below floor, provably cannot all end within the
 * capacity. Examines only the sections `in`. If true, r->why has sections whose boxes alone prove
 * it. */
bool ls_refute(LsRefuter *r, const LsOpenList *l, int64_t floor, LsSpan in);

#endif
