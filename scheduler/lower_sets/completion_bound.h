/* scheduler/lower_sets/completion_bound.h -- an upper bound on the gain that a partial strategy can
 * still add.
 *
 * The lower sets are projected on the heavy vertices. Light vertices are assumed to need no bytes
 * and to be kept if that gains. Few sets are left, and a DP over them from the end to the start
 * bounds every completion in the whole family. If no vertex is left out, the bound is the
 * optimum. */
#ifndef LS_SCHEDULER_LOWER_SETS_COMPLETION_BOUND_H
#define LS_SCHEDULER_LOWER_SETS_COMPLETION_BOUND_H

#include "scheduler/lower_sets/lower_set.h"

/* A point of the bound: with at most `most` bytes kept so far, at most `gain` can be added. */
typedef struct LsCeilingPoint { int64_t most; double gain; } LsCeilingPoint;

typedef struct LsRelax {        /* the projections of a family, for any budget */
    const LsForward *f;
    const LsFamily *fam;
    uint64_t *light;            /* set of the vertices left out */
    uint32_t n;                 /* number of projections; each comes before its supersets */
    uint32_t *of;               /* by set of the family: its projection */
    LsRows fiber;               /* by projection: its sets by rising size */
    uint64_t *low;              /* n rows */
    int64_t *halo;              /* by projection: the least of its sets, bytes */
    int64_t *mem, *stuck;       /* by projection: bytes of its vertices; of those that may not run
                                 * twice */
    uint32_t *edge_at, *edge;   /* by projection: its boundary, without stuck vertices */
} LsRelax;

typedef struct LsCeiling {      /* within one budget */
    const LsRelax *relax;
    int64_t budget;
    LsCeilingPoint **point;     /* by projection: by rising `most`, falling gain */
    uint32_t *n;
    int64_t *least;             /* by projection: least bytes kept by any state there; INT64_MAX:
                                 * there is no state */
    double *loose;              /* by vertex: its possible gain that the points leave out */
    double *sure;               /* by vertex: its gain within the points if kept */
    double *stuck, *last;       /* by projection: sums over its vertices; last: NULL if unused */
} LsCeiling;

typedef struct LsCeilingStep {  /* bounds over all steps between the sets of two projections */
    int64_t most;               /* the most bytes kept before the step */
    int64_t kept;               /* the least bytes newly kept */
    double gain;                /* the most gain, without loose gains */
} LsCeilingStep;

/* Leaves out vertices, the lightest first, until at most `most` projections remain. A family that
 * is not whole must have at most `most` sets. */
LsRelax *ls_relax_new(LsArena *arena, const LsForward *f, const LsFamily *fam, uint32_t most);

/* Computes the bound for a budget, bytes. gain: by vertex, of keeping it (negative: a loss). last:
 * by vertex, gain of having it in the last block; NULL: none. Returns NULL if there would be more
 * than `most` points. */
LsCeiling *ls_ceiling_new(LsArena *arena, const LsRelax *r, int64_t budget, const double *gain,
                          const double *last, uint32_t most);

/* Returns the most gain that can be added from projection k on with m bytes kept, without loose
 * gains; -INFINITY: no completion. */
double ls_ceiling_at(const LsCeiling *b, uint32_t k, int64_t m);

/* Returns the bounds on steps from projection i to projection j, which contains i. */
LsCeilingStep ls_ceiling_step(const LsCeiling *b, uint32_t i, uint32_t j);

bool ls_relax_holds(const LsRelax *r, uint32_t j, uint32_t i);

#endif
