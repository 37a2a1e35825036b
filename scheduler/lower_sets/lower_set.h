/* scheduler/lower_sets/lower_set.h -- the forward graph and its lower sets, as bit sets.
 *
 * A lower set L has no edge from outside into it. Its boundary is the set of vertices of L with a
 * successor outside (Kusumoto et al. 2019, arXiv:1905.11722). */
#ifndef LS_SCHEDULER_LOWER_SETS_LOWER_SET_H
#define LS_SCHEDULER_LOWER_SETS_LOWER_SET_H

#include "scheduler/graph/instance.h"

typedef struct LsForward {      /* a vertex per forward node, in run order */
    const LsProb *prob;
    LsArena *arena;             /* of the graph and its families */
    uint32_t n, nword;          /* nword: 64-bit words in a set */
    uint32_t *node;             /* vertex -> node */
    uint32_t *vertex;           /* node -> vertex, or LS_NO_ID */
    LsRows pred, succ;
    int64_t *mem;               /* by vertex: bytes of its results */
    double *time;               /* by vertex: cost of a run */
    uint64_t *stuck;            /* the set of vertices that may not run twice */
} LsForward;

typedef struct LsCutStep {     /* a step from a set to a superset */
    uint32_t from;
    int64_t kept;               /* bytes newly kept */
    double time;                /* cost of the vertices left for recomputation */
} LsCutStep;

typedef struct LsFamily {       /* lower sets by size, then by content:
                                 * first empty, last everything */
    uint32_t n, nword;
    uint64_t *low;              /* n rows */
    uint64_t *keep;             /* n rows: the boundary and the stuck vertices */
    int64_t *halo;              /* M(successors outside) + M(their operands outside), bytes */
    int64_t *mem;               /* by set: its bytes */
    double *time;               /* of the set */
    bool whole;                 /* the family has every lower set */
    /* Steps of the DP into set j: step[step_at[j] .. step_at[j + 1]). NULL if there are too
     * many. */
    LsCutStep *step; uint32_t *step_at;
} LsFamily;

static inline bool ls_bit(const uint64_t *set, uint32_t v) { return set[v / 64] >> (v % 64) & 1; }
static inline void ls_bit_add(uint64_t *set, uint32_t v) { set[v / 64] |= UINT64_C(1) << (v % 64); }

LsForward *ls_forward_new(LsArena *arena, const LsProb *p);

/* Writes to keep the boundary of low and its stuck vertices. Returns the bytes of the formula's
 * last two terms. work: scratch of 2 nword words. */
int64_t ls_cut_edge(const LsForward *f, const uint64_t *low, uint64_t *keep, uint64_t *work);

/* Writes the step from set i to set j of the family. Returns false if j does not contain i. */
bool ls_cut_step(const LsForward *f, const LsFamily *fam, uint32_t i, uint32_t j, LsCutStep *step);

/* Returns all lower sets, or NULL if there are more than `most`. */
LsFamily *ls_family_all(const LsForward *f, uint32_t most);
/* Returns the approximate family: for every v the set of v and its ancestors, the empty set and the
 * whole set. */
LsFamily *ls_family_pruned(const LsForward *f);
/* Returns the number of its sets without making it. */
uint32_t ls_family_pruned_size(const LsForward *f);
/* Returns the family of the n lower sets in rows of f->nword words, without duplicates. */
LsFamily *ls_family_of(const LsForward *f, const uint64_t *set, uint32_t n);

#endif
