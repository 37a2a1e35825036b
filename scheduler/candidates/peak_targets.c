/* scheduler/candidates/peak_targets.c -- see the header. */
#include "scheduler/candidates/peak_targets.h"

#include <stdlib.h>

static int falling(const void *x, const void *y)
{
    const int64_t *a = x, *b = y;
    return *a > *b ? -1 : *a < *b;
}

LsTargets ls_targets(LsArena *arena, int64_t top, int64_t store_all, bool fine)
{
    enum { PARTS = 20 };
    /* a twentieth of top is too coarse there */
    static const double LOW = 0.4, LEAST = 0.05, STEP = 0.94;
    uint32_t nfine = 0;
    for (double part = LOW; fine && part > LEAST; part *= STEP)
        nfine++;
    LsTargets t = {ls_arena_alloc(arena, nfine + 2 * (PARTS - 1), sizeof *t.bytes), 0};
    for (double part = LOW; t.n < nfine; part *= STEP)
        t.bytes[t.n++] = (int64_t)((double)top * part);
    for (int k = 1; k < PARTS; k++) {
        t.bytes[t.n++] = top / PARTS * k;
        if (store_all != top && store_all / PARTS * k < top)
            t.bytes[t.n++] = store_all / PARTS * k;
    }
    qsort(t.bytes, t.n, sizeof *t.bytes, falling);
    return t;
}
