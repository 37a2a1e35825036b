/* scheduler/offsets_refute.h -- proofs that open boxes cannot be placed below a capacity. */
#ifndef LS_SCHEDULER_OFFSETS_REFUTE_H
#define LS_SCHEDULER_OFFSETS_REFUTE_H

#include "scheduler/offsets_box.h"

typedef struct LsOpenBox {      /* still to be placed */
    int64_t least;              /* it rests there if it is placed next: the skyline below it */
    uint32_t box;
    bool passed;                /* others were placed where it could have been: it must come to
                                 * rest on a box that is placed from now on */
} LsOpenBox;

typedef struct LsRefuter {
    const LsBoxes *b;
    int64_t cap;                /* units */
    int64_t *sum, *end, *end2;  /* by section: of the open boxes; least and second least end */
    uint32_t *who;              /* by section: whose the least end is */
    int64_t *least;             /* by open box: as inferred so far */
    uint32_t *order;            /* of the open boxes */
    int64_t work;               /* what was looked at so far */
} LsRefuter;

/* For at most n open boxes at once. */
LsRefuter ls_refuter(LsArena *arena, const LsBoxes *b, uint32_t n);

/* The largest sum of open boxes over their sections; leaves the sums in r->sum. open[n] by rising
 * box, n > 0. */
int64_t ls_refuter_sums(LsRefuter *r, const LsOpenBox *open, uint32_t n);

/* Whether it is certain that open[n] (by rising box, n > 0), none of which may lie below floor,
 * cannot all end within the capacity. */
bool ls_refute(LsRefuter *r, const LsOpenBox *open, uint32_t n, int64_t floor);

#endif
