/* scheduler/lower_sets/completion_bound.h -- an upper bound on what a partial strategy can still keep.
 *
 * The lower sets are projected on the vertices that weigh something: the light ones are taken to
 * need no bytes and to be kept if that is good. Few sets are left, and a DP over them from the end
 * to the start bounds every completion in the whole family. Where nothing is light enough to leave
 * out, the bound is the optimum. */
#ifndef LS_SCHEDULER_LOWER_SETS_COMPLETION_BOUND_H
#define LS_SCHEDULER_LOWER_SETS_COMPLETION_BOUND_H

#include "scheduler/lower_sets/lower_set.h"

/* With at most `most` bytes kept so far, at most `gain` can be added. */
typedef struct LsCeilingPoint { int64_t most; double gain; } LsCeilingPoint;

typedef struct LsRelax {        /* of a family, for any budget */
    const LsForward *f;
    const LsFamily *fam;
    uint64_t *light;            /* set of the vertices left out */
    uint32_t n;                 /* projections; one comes before those that it is a part of */
    uint32_t *of;               /* by set of the family: its projection */
    uint32_t *fiber_at, *fiber; /* by projection: its sets, by size */
    uint64_t *low;              /* n rows */
    int64_t *halo;              /* by projection: the least of its sets, bytes */
    int64_t *mem, *stuck;       /* by projection: bytes of it, of what may not run twice in it */
    uint32_t *edge_at, *edge;   /* by projection: its boundary, without what is stuck */
} LsRelax;

typedef struct LsCeiling {      /* within one budget */
    const LsRelax *relax;
    int64_t budget;
    LsCeilingPoint **point;     /* by projection: by rising `most`, falling gain */
    uint32_t *n;
    int64_t *least;             /* by projection: no state there has kept fewer bytes; INT64_MAX:
                                 * there is none */
    double *loose;              /* by vertex: what it may gain outside the points */
    double *sure;               /* by vertex: what it gains in them if kept */
    double *stuck, *last;       /* by projection: sums over its vertices; last: NULL if unused */
} LsCeiling;

typedef struct LsCeilingStep {  /* between projections; of all steps between their sets: */
    int64_t most;               /* the most bytes kept before it */
    int64_t kept;               /* the least newly kept */
    double gain;                /* the most gained, but for what is loose */
} LsCeilingStep;

/* Leaves out as few vertices, the lightest first, as bring the projections down to `most`. A
 * family that is not whole must have no more sets than that. */
LsRelax *ls_relax_new(LsArena *arena, const LsForward *f, const LsFamily *fam, uint32_t most);

/* gain: by vertex, of keeping it (negative: a loss). last: by vertex, of having it in the last
 * block; NULL: nothing. Returns NULL when the points would be more than `most`. */
LsCeiling *ls_ceiling_new(LsArena *arena, const LsRelax *r, int64_t budget, const double *gain,
                          const double *last, uint32_t most);

/* The most that can be added from projection k on with m bytes kept, but for what is loose;
 * -INFINITY: no completion. */
double ls_ceiling_at(const LsCeiling *b, uint32_t k, int64_t m);

/* Between projections of which j holds i. */
LsCeilingStep ls_ceiling_step(const LsCeiling *b, uint32_t i, uint32_t j);

bool ls_relax_holds(const LsRelax *r, uint32_t j, uint32_t i);

#endif
