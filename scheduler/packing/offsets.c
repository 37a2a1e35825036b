/* scheduler/packing/offsets.c -- greedy fillings by several orders; then, for the parts of time
 * that end above the goal, complete search, and ejection where that takes too long. */
#include "scheduler/packing/offsets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/algorithms/tasks.h"
#include "scheduler/packing/packing_greedy.h"
#include "scheduler/packing/packing_repair.h"
#include "scheduler/packing/packing_search.h"

typedef struct Part { uint32_t from, to; int64_t peak, end; } Part;    /* boxes [from, to) */

typedef struct Pack {
    LsArena *tmp;
    LsBoxes b;
    Part *part; uint32_t npart;
    int64_t goal;               /* units: lower ends have no use */
    int64_t enough;             /* units: the first end at or below it is taken */
    int64_t hopeless;           /* units: the search gives up once this capacity counts as too
                                 * small */
    int64_t *place, *best;      /* by box: the place being made; the place in the part's best
                                 * packing */
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

/* Copies a part of `place` to p->best if it ends lower. */
static void keep_better(Pack *p, Part *part, const int64_t *place)
{
    int64_t end = 0;
    for (uint32_t k = part->from; k < part->to; k++) {
        int64_t top = ls_add(place[k], p->b.box[k].size);
        end = top > end ? top : end;
    }
    assert(end >= part->peak);                      /* else some boxes overlap */
    if (end >= part->end)
        return;
    part->end = end;
    memcpy(p->best + part->from, place + part->from, (part->to - part->from) * sizeof *p->best);
}

static bool is_good(const Pack *p)
{
    for (uint32_t k = 0; k < p->npart; k++)
        if (p->part[k].end > p->goal)
            return false;
    return true;
}

static void fill_by(const Pack *p, const char *key, int64_t *place)
{
    LsArena *arena = ls_arena_new();
    uint32_t *rank = ls_arena_alloc(arena, p->b.n + 1u, sizeof *rank);
    ls_boxes_rank(arena, &p->b, key, rank);
    ls_offsets_fill(arena, &p->b, rank, place);
    ls_arena_free(arena);
}

typedef struct Fills { const Pack *p; int64_t *place[LS_FILLS]; } Fills;

static void fill_behind_first(void *fills, uint32_t k)
{
    const Fills *f = fills;
    fill_by(f->p, ls_fill_key[1 + k], f->place[1 + k]);
}

static void fill_all_behind_first(Pack *p, Fills *f)
{
    for (int k = 1; k < LS_FILLS; k++)
        f->place[k] = ls_arena_alloc(p->tmp, p->b.n, sizeof *p->place);
    ls_side_by_side(LS_FILLS - 1, fill_behind_first, f);
}

/* Fills by one order after the other until the result is good. With many boxes all orders after the
 * first run in parallel, and those after a good one are ignored. */
static void fill(Pack *p)
{
    enum { MANY = 1000 };
    bool at_once = p->b.n > MANY;
    Fills f = {.p = p};
    for (int k = 0; k < LS_FILLS && !is_good(p); k++) {
        if (k == 0 || !at_once)
            fill_by(p, ls_fill_key[k], f.place[k] = p->place);
        else if (k == 1)
            fill_all_behind_first(p, &f);
        for (uint32_t i = 0; i < p->npart; i++)
            keep_better(p, &p->part[i], f.place[k]);
    }
}

/* Places a part below cap; subtracts the work done from *work. */
static LsSearchEnd place_below(Pack *p, LsArena *arena, LsSearch *s, Part *part, int64_t cap,
                               int64_t *work)
{
    int64_t half = *work / 2, other = *work - half;
    memcpy(p->place + part->from, p->best + part->from,
           (part->to - part->from) * sizeof *p->place);
    bool found = ls_offsets_eject(arena, &p->b, part->from, part->to, cap, &half, p->place);
    LsSearchEnd end = found ? LS_SEARCH_FOUND : LS_SEARCH_CUT;
    if (!found && s != NULL)
        end = ls_offsets_search(s, cap, &other, p->place);
    *work = half + other;
    return end;
}

/* Bisects the capacity between low and the best end so far, each step with at most `share` work. A
 * capacity at which the searches were cut counts as too small, although a packing found above may
 * still end below it. No step depends on `enough`, which only ends the steps sooner. */
static void halve(Pack *p, LsArena *arena, LsSearch *s, Part *part, int64_t low, int64_t work,
                  int64_t share)
{
    enum { FINE = 13 };                             /* bits */
    for (bool cut = false; part->end > low && part->end > p->enough && low <= p->hopeless;) {
        if (work <= 0 || (cut && part->end - low <= low >> FINE))
            break;
        int64_t cap = low + (part->end - low) / 2, mine = work < share ? work : share;
        work -= mine;
        LsSearchEnd end = place_below(p, arena, s, part, cap, &mine);
        work += mine;
        if (end == LS_SEARCH_FOUND)
            keep_better(p, part, p->place);
        else
            low = cap + 1;
        cut |= end == LS_SEARCH_CUT;
    }
}

/* Tries the goal itself by complete search, then bisects from above. If the goal is far below the
 * fillings, a complete search of many boxes finds it soon or not at all; then only ejection goes
 * on, with part of the work. */
static void improve(Pack *p, Part *part, int64_t work)
{
    enum { MANY = 500, MOST = 1200, NEAR = 50 };    /* boxes; a fiftieth */
    LsArena *arena = ls_arena_new();
    uint32_t n = part->to - part->from;
    int64_t low = part->peak > p->goal ? part->peak : p->goal;
    bool far = n > MANY && part->end - low > low / NEAR;
    int64_t share = far ? work / 16 : work / 2, mine = share;
    LsSearch *s = n > MOST ? NULL : ls_offsets_search_new(arena, &p->b, part->from, part->to);
    LsSearchEnd end = LS_SEARCH_CUT;
    if (s != NULL && (end = ls_offsets_search(s, low, &mine, p->place)) == LS_SEARCH_FOUND)
        keep_better(p, part, p->place);
    low += end == LS_SEARCH_REFUTED;
    if (far)
        halve(p, arena, NULL, part, low, work / 3, work / 6);
    else
        halve(p, arena, s, part, low, work - (share - mine), work / 4);
    ls_arena_free(arena);
}

static void search(Pack *p, int64_t work)
{
    for (uint32_t k = 0; k < p->npart; k++)
        if (p->part[k].end > p->goal && p->part[k].end < INT64_MAX / 4)
            improve(p, &p->part[k], work);
}

static int64_t to_units(int64_t bytes, int64_t alignment)
{
    return bytes / alignment + (bytes % alignment > 0);
}

/* Writes the places as offsets in bytes. Returns the end in bytes, INT64_MAX on overflow. */
static int64_t write_offsets(const Pack *p, const LsBlock *block, uint32_t n, int64_t alignment,
                             int64_t *offset)
{
    int64_t end = 0;
    for (uint32_t k = 0; k < n; k++)
        offset[k] = 0;
    for (uint32_t k = 0; k < p->b.n; k++) {
        uint32_t id = p->b.box[k].block;
        assert(p->best[k] >= 0);
        if (__builtin_mul_overflow(p->best[k], alignment, &offset[id]))
            return INT64_MAX;
        int64_t top = ls_add(offset[id], block[id].size);
        end = top > end ? top : end;
    }
    return end;
}

int64_t ls_offsets(const LsBlock *block, uint32_t n, int64_t alignment, int64_t good,
                   int64_t enough, LsPackEffort effort, int64_t *offset)
{
    bool any = enough < good;                       /* as near to `good` as possible */
    bool soon = effort == LS_PACK_SOON && !any;
    Pack p = {.tmp = ls_arena_new(), .goal = to_units(good, alignment),
              .enough = any ? -1 : enough / alignment,
              .hopeless = soon ? to_units(enough, alignment) : INT64_MAX};
    ls_boxes_make(p.tmp, block, n, alignment, &p.b);
    int64_t end = INT64_MAX;
    if (p.b.peak < INT64_MAX) {
        p.place = ls_arena_alloc(p.tmp, p.b.n + 1u, sizeof *p.place);
        p.best = ls_arena_alloc(p.tmp, p.b.n + 1u, sizeof *p.best);
        find_parts(&p);
        fill(&p);
        if (effort != LS_PACK_QUICK)
            search(&p, effort == LS_PACK_LONG ? INT64_C(2000000000) : INT64_C(100000000));
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
