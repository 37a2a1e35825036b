/* scheduler/offsets.c -- greedy fillings by several orders, then a complete search for the parts
 * of time that ended above the goal. */
#include "scheduler/offsets.h"

#include <stdlib.h>
#include <string.h>

#include "scheduler/offsets_fill.h"
#include "scheduler/offsets_search.h"

typedef struct Part { uint32_t from, to; int64_t peak, end; } Part;    /* boxes [from, to) */

typedef struct Pack {
    LsArena *tmp;
    LsBoxes b;
    Part *part; uint32_t npart;
    int64_t goal;               /* units: an end that is good enough */
    int64_t *place, *best;      /* by box: being made, and of the least end of its part */
} Pack;

static void find_parts(Pack *p)
{
    p->part = ls_arena_alloc(p->tmp, p->b.n + 1u, sizeof *p->part);
    for (uint32_t a = 0, z; a < p->b.n; a = z) {
        z = ls_boxes_part(&p->b, a);
        Part part = {a, z, 0, INT64_MAX};
        uint32_t last = z < p->b.n ? p->b.box[z].from : p->b.nsection;
        for (uint32_t s = p->b.box[a].from; s < last; s++)
            part.peak = p->b.total[s] > part.peak ? p->b.total[s] : part.peak;
        p->part[p->npart++] = part;
    }
}

/* Keeps what p->place has better than p->best for a part. */
static void keep_better(Pack *p, Part *part)
{
    int64_t end = 0;
    for (uint32_t k = part->from; k < part->to; k++) {
        int64_t top = ls_add(p->place[k], p->b.box[k].size);
        end = top > end ? top : end;
    }
    if (end >= part->end)
        return;
    part->end = end;
    memcpy(p->best + part->from, p->place + part->from,
           (part->to - part->from) * sizeof *p->best);
}

static bool is_good(const Pack *p)
{
    for (uint32_t k = 0; k < p->npart; k++)
        if (p->part[k].end > p->goal)
            return false;
    return true;
}

static void fill(Pack *p)
{
    static const char *const key[] = {"WAT", "AWT", "TWA", "ZWA", "TAW", "SZ"};
    enum { NKEYS = sizeof key / sizeof key[0] };
    uint32_t *rank = ls_arena_alloc(p->tmp, p->b.n + 1u, sizeof *rank);
    for (int k = 0; k < NKEYS && !is_good(p); k++) {
        ls_boxes_rank(p->tmp, &p->b, key[k], rank);
        ls_offsets_fill(p->tmp, &p->b, rank, p->place);
        for (uint32_t i = 0; i < p->npart; i++)
            keep_better(p, &p->part[i]);
    }
}

/* First the goal itself, with half of the work, then by halves what is between it and the best so
 * far. A capacity at which the search was cut counts as too small. */
static void improve(Pack *p, Part *part, int64_t work)
{
    LsArena *arena = ls_arena_new();
    LsSearch *s = ls_offsets_search_new(arena, &p->b, part->from, part->to);
    int64_t low = part->peak > p->goal ? part->peak : p->goal, share = work / 2;
    for (int64_t cap = low; low < part->end && work > 0; cap = low + (part->end - low) / 2) {
        int64_t mine = work < share ? work : share;
        work -= mine;
        if (ls_offsets_search(s, cap, &mine, p->place) == LS_SEARCH_FOUND)
            keep_better(p, part);
        else
            low = cap + 1;
        work += mine;
        share = share > 16 ? share / 2 : share;
    }
    ls_arena_free(arena);
}

static void search(Pack *p, int64_t work)
{
    for (uint32_t k = 0; k < p->npart; k++)
        if (p->part[k].end > p->goal && p->part[k].end < INT64_MAX / 4) {
            improve(p, &p->part[k], work);
            p->goal = p->part[k].end > p->goal ? p->part[k].end : p->goal;
        }
}

/* Units to bytes; returns the end in bytes, INT64_MAX when that is too much. */
static int64_t write_offsets(const Pack *p, const LsBlock *block, uint32_t n, int64_t alignment,
                             int64_t *offset)
{
    int64_t end = 0;
    for (uint32_t k = 0; k < n; k++)
        offset[k] = 0;
    for (uint32_t k = 0; k < p->b.n; k++) {
        uint32_t id = p->b.box[k].block;
        if (__builtin_mul_overflow(p->best[k], alignment, &offset[id]))
            return INT64_MAX;
        int64_t top = ls_add(offset[id], block[id].size);
        end = top > end ? top : end;
    }
    return end;
}

int64_t ls_offsets(const LsBlock *block, uint32_t n, int64_t alignment, int64_t good,
                   LsPackEffort effort, int64_t *offset)
{
    Pack p = {.tmp = ls_arena_new(), .goal = good / alignment + (good % alignment > 0)};
    ls_boxes_make(p.tmp, block, n, alignment, &p.b);
    int64_t end = INT64_MAX;
    if (p.b.peak < INT64_MAX) {
        p.place = ls_arena_alloc(p.tmp, p.b.n + 1u, sizeof *p.place);
        p.best = ls_arena_alloc(p.tmp, p.b.n + 1u, sizeof *p.best);
        find_parts(&p);
        fill(&p);
        if (effort != LS_PACK_QUICK)
            search(&p, effort == LS_PACK_FULL ? INT64_C(200000000) : INT64_C(2000000000));
        end = write_offsets(&p, block, n, alignment, offset);
    }
    ls_arena_free(p.tmp);
    return end;
}

int64_t ls_offsets_bound(const LsBlock *block, uint32_t n)
{
    LsArena *tmp = ls_arena_new();
    LsBoxes b;
    ls_boxes_make(tmp, block, n, 1, &b);
    ls_arena_free(tmp);
    return b.peak;
}
