/* scheduler/algorithms/range_max_tree.c -- see the header. */
#include "scheduler/algorithms/range_max_tree.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

LsPeakTree ls_peak_tree_new(LsArena *arena, uint32_t n)
{
    assert(n >= LS_PEAK_TREE_PARTS && (n & (n - 1)) == 0);
    LsPeakTree t = {.n = n, .changed = UINT64_MAX};
    t.max = ls_arena_alloc(arena, 2 * (size_t)n, sizeof *t.max);
    t.add = ls_arena_alloc(arena, n, sizeof *t.add);
    t.over = ls_arena_alloc(arena, 2 * LS_PEAK_TREE_PARTS, sizeof *t.over);
    while (n >> t.shift > LS_PEAK_TREE_PARTS)
        t.shift++;
    return t;
}

static inline int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void ls_peak_tree_fill(LsPeakTree *t, const int64_t *value)
{
    memcpy(t->max + t->n, value, t->n * sizeof *value);
    memset(t->add, 0, t->n * sizeof *t->add);
    t->changed = UINT64_MAX;
    for (uint32_t k = t->n; k-- > 1;)
        t->max[k] = larger(t->max[2 * k], t->max[2 * k + 1]);
}

static void lift(LsPeakTree *t, uint32_t k)
{
    while (k > 1) {
        k /= 2;
        int64_t now = larger(t->max[2 * k], t->max[2 * k + 1]) + t->add[k];
        if (now == t->max[k])
            return;
        t->max[k] = now;
    }
}

void ls_peak_tree_add(LsPeakTree *t, uint32_t from, uint32_t to, int64_t value)
{
    if (from > to || value == 0)
        return;
    assert(to < t->n);
    t->changed |= UINT64_MAX << (from >> t->shift)
                  & UINT64_MAX >> (LS_PEAK_TREE_PARTS - 1 - (to >> t->shift));
    uint32_t lo = from + t->n, hi = to + t->n;
    if (lo == hi) {
        t->max[lo] += value;
        lift(t, lo);
        return;
    }
    /* The two ends climb together; subtrees between them get the whole addition. */
    t->max[lo] += value;
    t->max[hi] += value;
    for (; lo / 2 != hi / 2; lo /= 2, hi /= 2) {
        if (lo % 2 == 0) {
            t->max[lo + 1] += value;
            if (lo + 1 < t->n)
                t->add[lo + 1] += value;
        }
        if (hi % 2 == 1) {
            t->max[hi - 1] += value;
            if (hi - 1 < t->n)
                t->add[hi - 1] += value;
        }
        t->max[lo / 2] = larger(t->max[lo], t->max[lo ^ 1]) + t->add[lo / 2];
        t->max[hi / 2] = larger(t->max[hi], t->max[hi ^ 1]) + t->add[hi / 2];
    }
    lift(t, lo);
}

uint32_t ls_peak_tree_top(const LsPeakTree *t)
{
    uint32_t k = 1;
    while (k < t->n)
        k = 2 * k + (t->max[2 * k + 1] > t->max[2 * k]);
    return k - t->n;
}

uint32_t ls_peak_tree_some(const LsPeakTree *t, int64_t limit, uint32_t choice)
{
    uint32_t k = 1;
    while (k < t->n) {
        limit -= t->add[k];
        bool left = t->max[2 * k] > limit, right = t->max[2 * k + 1] > limit;
        k = 2 * k + (left && right ? choice & 1 : right);
        choice >>= 1;
    }
    return k - t->n;
}

static int64_t sum_over(const LsPeakTree *t, uint32_t k, int64_t limit)
{
    if (t->max[k] <= limit)
        return 0;
    if (k >= t->n)
        return t->max[k] - limit;
    return sum_over(t, 2 * k, limit - t->add[k]) + sum_over(t, 2 * k + 1, limit - t->add[k]);
}

/* Returns the sum of node k, below which lie the parts `mine`; unchanged parts keep their last
 * sum. */
static int64_t over(LsPeakTree *t, uint32_t k, int64_t limit, uint64_t mine)
{
    if ((t->changed & mine) == 0)
        return t->over[k];
    if (t->max[k] <= limit)                         /* changes below are left for later */
        return t->over[k] = 0;
    if (k >= LS_PEAK_TREE_PARTS) {
        t->changed &= ~mine;
        return t->over[k] = sum_over(t, k, limit);
    }
    uint32_t half = LS_PEAK_TREE_PARTS >> (32 - __builtin_clz(k));
    uint64_t left = mine & mine >> half;
    limit -= t->add[k];
    return t->over[k] = over(t, 2 * k, limit, left) + over(t, 2 * k + 1, limit, mine & ~left);
}

int64_t ls_peak_tree_over(LsPeakTree *t, int64_t limit)
{
    if (t->limit != limit)
        t->changed = UINT64_MAX;
    t->limit = limit;
    return over(t, 1, limit, UINT64_MAX);
}
