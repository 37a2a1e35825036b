/* scheduler/offsets_refute.c -- each section of time is a machine that its boxes pass through one
 * by one, upwards, so the bounds of one-machine scheduling with release dates hold in it.
 *
 * Sums: the boxes of a section lie above its floor. Not first: a box that leaves too little above
 * it if all others of a section come later rests on one of them. Release dates (Jackson's rule):
 * boxes that cannot lie below a height end at least their sum above it. */
#include "scheduler/offsets_refute.h"

#include <string.h>

LsRefuter ls_refuter(LsArena *arena, const LsBoxes *b, uint32_t n)
{
    LsRefuter r = {.b = b};
    r.sum = ls_arena_alloc(arena, b->nsection + 2u, sizeof *r.sum);
    r.end = ls_arena_alloc(arena, b->nsection + 1u, sizeof *r.end);
    r.end2 = ls_arena_alloc(arena, b->nsection + 1u, sizeof *r.end2);
    r.who = ls_arena_alloc(arena, b->nsection + 1u, sizeof *r.who);
    r.least = ls_arena_alloc(arena, n + 1u, sizeof *r.least);
    r.order = ls_arena_alloc(arena, n + 1u, sizeof *r.order);
    return r;
}

static uint32_t last_section(const LsRefuter *r, const LsOpenBox *open, uint32_t n)
{
    uint32_t last = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t to = r->b->box[open[k].box].to;
        last = to > last ? to : last;
    }
    return last;
}

int64_t ls_refuter_sums(LsRefuter *r, const LsOpenBox *open, uint32_t n)
{
    uint32_t from = r->b->box[open[0].box].from, to = last_section(r, open, n);
    memset(r->sum + from, 0, (to - from + 2) * sizeof *r->sum);
    for (uint32_t k = 0; k < n; k++) {
        const LsBox *x = &r->b->box[open[k].box];
        r->sum[x->from] += x->size;
        r->sum[x->to + 1] -= x->size;
    }
    int64_t most = 0;
    for (uint32_t s = from; s <= to; s++) {
        r->sum[s] += s > from ? r->sum[s - 1] : 0;
        most = r->sum[s] > most ? r->sum[s] : most;
    }
    r->work += n + (to - from);
    return most;
}

/* The two boxes of each section that could end lowest. */
static void find_ends(LsRefuter *r, const LsOpenBox *open, uint32_t n)
{
    uint32_t from = r->b->box[open[0].box].from, to = last_section(r, open, n);
    for (uint32_t s = from; s <= to; s++)
        r->end[s] = r->end2[s] = INT64_MAX;
    for (uint32_t k = 0; k < n; k++) {
        const LsBox *x = &r->b->box[open[k].box];
        int64_t end = r->least[k] + x->size;
        for (uint32_t s = x->from; s <= x->to; s++) {
            if (end < r->end[s]) {
                r->end2[s] = r->end[s];
                r->end[s] = end;
                r->who[s] = k;
            } else if (end < r->end2[s]) {
                r->end2[s] = end;
            }
        }
        r->work += x->to - x->from + 1;
    }
}

/* Raises open box k onto the lowest of those of which one must be below it. */
static bool raise(LsRefuter *r, const LsOpenBox *open, uint32_t k)
{
    const LsBox *x = &r->b->box[open[k].box];
    int64_t least = r->least[k], on = INT64_MAX, up = least;
    for (uint32_t s = x->from; s <= x->to; s++) {
        int64_t other = r->who[s] == k ? r->end2[s] : r->end[s];
        on = other < on ? other : on;
        if (least + r->sum[s] > r->cap && other > up)
            up = other;                             /* not the first of section s */
    }
    if (open[k].passed && on > up)
        up = on;
    r->work += x->to - x->from + 1;
    r->least[k] = up;
    return up <= r->cap - x->size;
}

/* Heap sort: falling least. */
static void sort(LsRefuter *r, uint32_t n)
{
    uint32_t *h = r->order;
    for (uint32_t k = 0; k < n; k++)
        h[k] = k;
    for (uint32_t start = n / 2, end = n; end > 1;) {
        uint32_t id;
        if (start > 0) {
            id = h[--start];
        } else {
            id = h[--end];
            h[end] = h[0];
        }
        uint32_t at = start;
        for (uint32_t kid; (kid = 2 * at + 1) < end; at = kid) {
            if (kid + 1 < end && r->least[h[kid + 1]] < r->least[h[kid]])
                kid++;
            if (r->least[h[kid]] >= r->least[id])
                break;
            h[at] = h[kid];
        }
        h[at] = id;
    }
}

static bool over_by_release(LsRefuter *r, const LsOpenBox *open, uint32_t n)
{
    uint32_t from = r->b->box[open[0].box].from, to = last_section(r, open, n);
    sort(r, n);
    memset(r->sum + from, 0, (to - from + 1) * sizeof *r->sum);
    for (uint32_t j = 0; j < n; j++) {
        uint32_t k = r->order[j];
        const LsBox *x = &r->b->box[open[k].box];
        int64_t most = 0, size = x->size, *sum = r->sum;
        for (uint32_t s = x->from; s <= x->to; s++) {
            sum[s] += size;
            most = sum[s] > most ? sum[s] : most;
        }
        r->work += x->to - x->from + 1;
        if (most > r->cap - r->least[k])
            return true;
    }
    return false;
}

bool ls_refute(LsRefuter *r, const LsOpenBox *open, uint32_t n, int64_t floor)
{
    enum { MOST = 100000 };       /* more than that are refuted when they have come apart */
    for (uint32_t k = 0; k < n; k++) {
        r->least[k] = open[k].least > floor ? open[k].least : floor;
        if (r->least[k] > r->cap - r->b->box[open[k].box].size)
            return true;
    }
    if (ls_refuter_sums(r, open, n) > r->cap - floor)
        return true;
    if (n > MOST)
        return false;
    find_ends(r, open, n);
    for (uint32_t k = 0; k < n; k++)
        if (!raise(r, open, k))
            return true;
    return over_by_release(r, open, n);
}
