/* scheduler/packing/packing_refute.c -- each section of time is like a machine that processes its
 * boxes one by one, upwards, so bounds of one-machine scheduling with release dates hold.
 *
 * Release dates (Jackson's rule): boxes that cannot lie below a height end at least their sum above
 * it. Not first: if a box would leave too little room above for all others of a section, it rests
 * on one of them. */
#include "scheduler/packing/packing_refute.h"

#include <string.h>

LsRefuter ls_refuter(LsArena *arena, const LsBoxes *b)
{
    LsRefuter r = {.b = b};
    r.sum = ls_arena_alloc(arena, b->nsection + 2u, sizeof *r.sum);
    r.end = ls_arena_alloc(arena, b->nsection + 1u, sizeof *r.end);
    r.end2 = ls_arena_alloc(arena, b->nsection + 1u, sizeof *r.end2);
    r.who = ls_arena_alloc(arena, b->nsection + 1u, sizeof *r.who);
    r.raised = ls_arena_alloc(arena, b->n + 1u, sizeof *r.raised);
    r.by = ls_arena_alloc(arena, b->n + 1u, sizeof *r.by);
    return r;
}

int64_t ls_refuter_sums(LsRefuter *r, const LsOpenList *l)
{
    memset(r->sum + l->from, 0, (l->to - l->from + 2) * sizeof *r->sum);
    for (uint32_t k = 0; k < l->n; k++) {
        const LsBox *x = &r->b->box[l->open[k].box];
        r->sum[x->from] += x->size;
        r->sum[x->full + 1] -= x->size - x->rest;
        r->sum[x->to + 1] -= x->rest;
    }
    int64_t most = 0, sum = 0;
    for (uint32_t s = l->from; s <= l->to; s++) {
        r->sum[s] = sum += r->sum[s];
        if (sum > most) {
            most = sum;
            r->most = s;
        }
    }
    r->work += l->n + (l->to - l->from);
    return most;
}

static inline uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static inline uint32_t sooner(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Leaves the sums of the open boxes in r->sum when it returns false. */
static bool over_by_release(LsRefuter *r, const LsOpenBox *open, uint32_t n, int64_t floor,
                            uint32_t from, uint32_t to)
{
    int64_t *sum = r->sum;
    memset(sum + from, 0, (to - from + 1) * sizeof *sum);
    for (uint32_t k = 0; k < n; k++) {
        const LsBox *x = &r->b->box[open[k].box];
        int64_t least = open[k].least > floor ? open[k].least : floor, most = 0;
        uint32_t a = later(x->from, from), z = sooner(x->to, to);
        for (uint32_t s = a; s <= z; s++) {
            sum[s] += ls_box_at(x, s);
            most = sum[s] > most ? sum[s] : most;
        }
        r->work += z >= a ? z - a + 2 : 1;
        if (most > r->cap - least) {
            while (sum[a] <= r->cap - least)
                a++;
            r->why = (LsSpan){a, a};
            return true;
        }
    }
    return false;
}

/* Finds the two lowest possible ends of boxes in each section. */
static void find_ends(LsRefuter *r, uint32_t n, uint32_t from, uint32_t to)
{
    for (uint32_t s = from; s <= to; s++)
        r->end[s] = r->end2[s] = INT64_MAX;
    for (uint32_t k = 0; k < n; k++) {
        const LsBox *x = &r->b->box[r->raised[k].box];
        uint32_t a = later(x->from, from), z = sooner(x->to, to);
        for (uint32_t s = a; s <= z; s++) {
            int64_t end = r->raised[k].least + ls_box_at(x, s);
            if (end < r->end[s]) {
                r->end2[s] = r->end[s];
                r->end[s] = end;
                r->who[s] = k;
            } else if (end < r->end2[s]) {
                r->end2[s] = end;
            }
        }
        r->work += z >= a ? z - a + 2 : 1;
    }
}

/* Returns the least height of box k, given that some box must end below it. */
static int64_t raise(LsRefuter *r, uint32_t k, uint32_t from, uint32_t to)
{
    LsSpan by = {1, 0};
    const LsOpenBox *o = &r->raised[k];
    const LsBox *x = &r->b->box[o->box];
    int64_t on = INT64_MAX, up = o->least;
    uint32_t a = later(x->from, from), z = sooner(x->to, to);
    for (uint32_t s = a; s <= z; s++) {
        int64_t other = r->who[s] == k ? r->end2[s] : r->end[s];
        on = other < on ? other : on;
        if (o->least + r->sum[s] > r->cap && other > up) {
            up = other;                             /* box k is not the first of section s */
            by = (LsSpan){s, s};
        }
    }
    r->work += z >= a ? z - a + 2 : 1;
    if (o->passed && on > up && x->from >= from && x->to <= to) {
        up = on;
        by = (LsSpan){x->from, x->to};
    }
    r->by[o->box] = by;
    return up;
}

/* Keeps r->raised sorted by falling `least` when entry k rises. */
static void move_up(LsRefuter *r, uint32_t k, int64_t least)
{
    LsOpenBox o = r->raised[k];
    o.least = least;
    for (; k > 0 && r->raised[k - 1].least < least; k--)
        r->raised[k] = r->raised[k - 1];
    r->raised[k] = o;
}

bool ls_refute(LsRefuter *r, const LsOpenList *l, int64_t floor, LsSpan in)
{
    enum { MOST = 1200 };       /* larger lists are refuted once they separate in time */
    uint32_t from = later(in.from, l->from), to = sooner(in.to, l->to);
    if (from > to || l->n > MOST)
        return false;
    if (over_by_release(r, l->open, l->n, floor, from, to))
        return true;
    uint32_t n = 0, up = 0;
    for (uint32_t k = 0; k < l->n; k++) {           /* the boxes in these sections */
        LsOpenBox o = l->open[k];
        const LsBox *x = &r->b->box[o.box];
        o.least = o.least > floor ? o.least : floor;
        if (x->from <= to && x->to >= from)
            r->raised[n++] = o;
    }
    find_ends(r, n, from, to);
    for (uint32_t k = 0; k < n; k++) {
        int64_t least = raise(r, k, from, to);
        if (least > r->cap - r->b->box[r->raised[k].box].size) {
            r->why = r->by[r->raised[k].box];
            return true;
        }
        up += least > r->raised[k].least;
        r->raised[k].least = least;
    }
    if (up == 0)
        return false;
    for (uint32_t k = 1; k < n; k++)
        move_up(r, k, r->raised[k].least);
    if (!over_by_release(r, r->raised, n, floor, from, to))
        return false;
    LsSpan at = r->why;
    for (uint32_t k = 0; k < n; k++) {              /* and the sections that raised the boxes
                                                     * there */
        const LsBox *x = &r->b->box[r->raised[k].box];
        if (x->from <= at.from && at.from <= x->to)
            r->why = ls_span_join(r->why, r->by[r->raised[k].box]);
    }
    return true;
}
