/* scheduler/packing/packing_refute.h -- proofs that open boxes cannot be placed below a capacity. */
#ifndef LS_SCHEDULER_PACKING_PACKING_REFUTE_H
#define LS_SCHEDULER_PACKING_PACKING_REFUTE_H

#include "scheduler/packing/packing_boxes.h"

typedef struct LsOpenBox {      /* still to be placed */
    int64_t least;              /* the skyline below it: it rests there if it is placed next */
    uint32_t box;
    bool passed;                /* others were placed where it could have been: it must come to
                                 * rest on a box that is placed from now on */
} LsOpenBox;

/* Open boxes of one part of time, by falling least. */
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
    int64_t *sum, *end, *end2;  /* by section: of the open boxes; least and second least end */
    uint32_t *who;              /* by section: whose the least end is */
    LsOpenBox *raised;          /* a list with what was inferred */
    LsSpan *by;                 /* by box: sections that raised it */
    uint32_t most;              /* a section of the largest sum */
    LsSpan why;                 /* of the last refutation */
    int64_t work;               /* boxes and sections that were looked at so far */
} LsRefuter;

LsRefuter ls_refuter(LsArena *arena, const LsBoxes *b);

/* The largest sum of open boxes over the sections of the list; r->most says where. */
int64_t ls_refuter_sums(LsRefuter *r, const LsOpenList *l);

/* Whether it is certain that the boxes, none of which may lie below floor, cannot all end within
 * the capacity. Looks at some sections only. If so, r->why are sections whose boxes alone
 * prove it. */
bool ls_refute(LsRefuter *r, const LsOpenList *l, int64_t floor, LsSpan in);

#endif
