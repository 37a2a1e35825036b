/* scheduler/algorithms/range_max_tree.h -- a maximum tree: a row of numbers under range additions,
 * with their maximum.
 *
 * Additions stay at the tree nodes where they were made. Both operations are O(log n), and a change
 * that does not alter a subtree's maximum stops there. */
#ifndef LS_SCHEDULER_ALGORITHMS_RANGE_MAX_TREE_H
#define LS_SCHEDULER_ALGORITHMS_RANGE_MAX_TREE_H

#include "base/arena.h"

enum { LS_PEAK_TREE_PARTS = 64 };       /* parts of equal size, for sums: bits of `changed` */

typedef struct LsPeakTree {
    uint32_t n;                 /* places, a power of two, at least LS_PEAK_TREE_PARTS */
    int64_t *max;               /* 2n: maximum below, with its own and lower additions */
    int64_t *add;               /* n: addition to everything below */
    uint32_t shift;             /* a part has 2^shift places */
    uint64_t changed;           /* parts changed since they were last summed */
    int64_t limit, *over;       /* 2 * LS_PEAK_TREE_PARTS: sums of the excess over `limit`, by
                                 * node */
} LsPeakTree;

/* Makes a tree of n zeros. */
LsPeakTree ls_peak_tree_new(LsArena *arena, uint32_t n);

/* Sets all places to value[n]. O(n). */
void ls_peak_tree_fill(LsPeakTree *t, const int64_t *value);

/* Adds `value` to places from .. to, both inclusive; no change if from > to. */
void ls_peak_tree_add(LsPeakTree *t, uint32_t from, uint32_t to, int64_t value);

/* Returns the first place with the maximum. */
uint32_t ls_peak_tree_top(const LsPeakTree *t);

/* Returns a place with a number above `limit`, chosen by the bits of `choice`; there must be
 * one. */
uint32_t ls_peak_tree_some(const LsPeakTree *t, int64_t limit, uint32_t choice);

/* Returns the sum of the excesses of all numbers over `limit`. O(places above it * log n), only for
 * parts changed since the last call with the same limit. */
int64_t ls_peak_tree_over(LsPeakTree *t, int64_t limit);

static inline int64_t ls_peak_tree_max(const LsPeakTree *t) { return t->max[1]; }

#endif
