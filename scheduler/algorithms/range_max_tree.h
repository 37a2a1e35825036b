/* scheduler/algorithms/range_max_tree.h -- a row of numbers under additions to ranges, with its largest.
 *
 * A maximum tree with additions that stay where they were made: both operations are O(log n),
 * and a change that leaves a subtree's maximum alone goes no further up. */
#ifndef LS_SCHEDULER_ALGORITHMS_RANGE_MAX_TREE_H
#define LS_SCHEDULER_ALGORITHMS_RANGE_MAX_TREE_H

#include "base/arena.h"

enum { LS_PEAK_TREE_PARTS = 64 };       /* of equal size, for sums: bits of `changed` */

typedef struct LsPeakTree {
    uint32_t n;                 /* places, a power of two, at least LS_PEAK_TREE_PARTS */
    int64_t *max;               /* 2n: largest below, its own and lower additions counted */
    int64_t *add;               /* n: to everything below */
    uint32_t shift;             /* a part has 2^shift places */
    uint64_t changed;           /* parts with other numbers than when they were last summed */
    int64_t limit, *over;       /* 2 * LS_PEAK_TREE_PARTS: sums of what was above it, by node */
} LsPeakTree;

/* All zero. */
LsPeakTree ls_peak_tree_new(LsArena *arena, uint32_t n);

/* Sets all places: value[n]. O(n). */
void ls_peak_tree_fill(LsPeakTree *t, const int64_t *value);

/* Adds to places from .. to, both included; nothing where from > to. */
void ls_peak_tree_add(LsPeakTree *t, uint32_t from, uint32_t to, int64_t value);

/* The first place with the largest number. */
uint32_t ls_peak_tree_top(const LsPeakTree *t);

/* A place with a number above `limit`, by the bits of `choice`; one must have. */
uint32_t ls_peak_tree_some(const LsPeakTree *t, int64_t limit, uint32_t choice);

/* The sum of what all numbers are above `limit`. O(places above it, times log n), of those parts
 * alone that have changed since it was asked for with the same limit. */
int64_t ls_peak_tree_over(LsPeakTree *t, int64_t limit);

static inline int64_t ls_peak_tree_max(const LsPeakTree *t) { return t->max[1]; }

#endif
