/* compiler/cost/cache_reuse.c -- Mattson's stack distance for ranges of bytes. */
#include "compiler/cost/cache_reuse.h"

#include <string.h>

enum { MOST = 4096 };           /* remembered ranges */

static void add_part(LsReuse *r, double bytes, double age)
{
    r->part = ls_arena_grow(r->arena, r->part, r->npart, r->npart + 1u, sizeof *r->part,
                            &r->part_room);
    r->part[r->npart++] = (LsAged){bytes, age};
}

static uint32_t keep(LsReuse *r, uint32_t n, int64_t from, int64_t to)
{
    if (from >= to)
        return n;
    r->kept = ls_arena_grow(r->arena, r->kept, n, n + 1u, sizeof *r->kept, &r->kept_room);
    r->kept[n] = (LsRange){from, to};
    return n + 1;
}

static void push(LsReuse *r, LsRange range)
{
    r->range = ls_arena_grow(r->arena, r->range, r->nrange, r->nrange + 1u, sizeof *r->range,
                             &r->room);
    r->range[r->nrange++] = range;
}

void ls_reuse_touch(LsReuse *r, int64_t from, int64_t to)
{
    int64_t missing = to - from;
    double age = 0;
    uint32_t at = r->nrange, nkept = 0;     /* kept: ranges behind `at` that stay, last first */
    r->npart = 0;
    if (missing <= 0)
        return;
    while (at > 0 && missing > 0) {
        LsRange old = r->range[--at];
        int64_t lo = old.from > from ? old.from : from, hi = old.to < to ? old.to : to;
        age += (double)(old.to - old.from);
        if (lo >= hi) {
            nkept = keep(r, nkept, old.from, old.to);
            continue;
        }
        add_part(r, (double)(hi - lo), age);
        missing -= hi - lo;
        nkept = keep(r, nkept, hi, old.to);
        nkept = keep(r, nkept, old.from, lo);
    }
    if (missing > 0)
        add_part(r, (double)missing, LS_REUSE_NEVER);
    r->nrange = at;
    while (nkept > 0)
        push(r, r->kept[--nkept]);
    push(r, (LsRange){from, to});
    if (r->nrange > MOST) {
        memmove(r->range, r->range + (r->nrange - MOST / 2), MOST / 2 * sizeof *r->range);
        r->nrange = MOST / 2;
    }
}
