/* scheduler/packing/packing_boxes.c -- turns steps into sections, and ranks boxes. */
#include "scheduler/packing/packing_boxes.h"

#include <assert.h>
#include <stdlib.h>

typedef struct Event { uint32_t step, block; } Event;   /* block >= n: the upper end of box `block`
                                                         * - n */

static int by_step(const void *x, const void *y)
{
    const Event *a = x, *b = y;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

static int by_from(const void *x, const void *y)
{
    const LsBox *a = x, *b = y;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->to != b->to)
        return a->to > b->to ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

/* Numbers the sections: a section closes at the first end after a start. */
static uint32_t find_sections(LsArena *arena, const LsBlock *block, LsBoxes *b)
{
    Event *start = ls_arena_alloc(arena, b->n + 1u, sizeof *start);
    Event *end = ls_arena_alloc(arena, 2 * (size_t)b->n + 1, sizeof *end);
    uint32_t section = 0, s = 0, nend = b->n;
    bool open = false;
    for (uint32_t k = 0; k < b->n; k++) {
        const LsBlock *of = &block[b->box[k].block];
        start[k] = (Event){of->from, k};
        end[k] = (Event){of->to, k};
        if (b->box[k].rest < b->box[k].size)
            end[nend++] = (Event){of->full, b->n + k};
    }
    qsort(start, b->n, sizeof *start, by_step);
    qsort(end, nend, sizeof *end, by_step);
    for (uint32_t e = 0; e < nend; e++) {
        for (; s < b->n && start[s].step <= end[e].step; s++) {
            b->box[start[s].block].from = section;
            open = true;
        }
        section += open;
        open = false;
        if (end[e].block < b->n)
            b->box[end[e].block].to = section - 1;
        else
            b->box[end[e].block - b->n].full = section - 1;
    }
    for (uint32_t k = 0; k < b->n; k++)
        if (b->box[k].rest == b->box[k].size)
            b->box[k].full = b->box[k].to;
    return section;
}

static int64_t to_units(int64_t bytes, int64_t alignment)
{
    return bytes / alignment + (bytes % alignment != 0);
}

/* Computes the sum of sizes per section; stops at the first overflow. */
static void find_totals(LsArena *arena, LsBoxes *b)
{
    uint32_t *leaving = ls_arena_alloc(arena, b->nsection + 1u, sizeof *leaving);
    uint32_t *next = ls_arena_alloc(arena, 2 * (size_t)b->n + 1, sizeof *next);
    for (uint32_t k = 0; k < 2 * b->n; k++) {       /* lists of lower and upper ends by last
                                                     * section; 0: end of list */
        uint32_t last = k % 2 ? b->box[k / 2].full : b->box[k / 2].to;
        next[k] = leaving[last];
        leaving[last] = k + 1;
    }
    int64_t used = 0;
    for (uint32_t s = 0, k = 0; s < b->nsection; s++) {
        for (; k < b->n && b->box[k].from == s; k++)
            used = ls_add(used, b->box[k].size);
        b->total[s] = used;
        b->peak = used > b->peak ? used : b->peak;
        if (used == INT64_MAX)                      /* an overflow makes the rest irrelevant */
            return;
        for (uint32_t x = leaving[s]; x != 0; x = next[x - 1]) {
            const LsBox *o = &b->box[(x - 1) / 2];
            used -= (x - 1) % 2 ? o->size - o->rest : o->rest;
        }
    }
}

void ls_boxes_make(LsArena *arena, const LsBlock *block, uint32_t n, int64_t alignment,
                   LsBoxes *out)
{
    assert(alignment > 0);
    *out = (LsBoxes){.box = ls_arena_alloc(arena, n + 1u, sizeof *out->box)};
    for (uint32_t k = 0; k < n; k++) {
        assert(ls_block_is_sound(&block[k]));
        if (block[k].size > 0) {
            int64_t units = to_units(block[k].size, alignment);
            int64_t rest = block[k].rest > 0 ? to_units(block[k].rest, alignment) : units;
            out->box[out->n++] = (LsBox){.size = units, .rest = rest, .block = k};
        }
    }
    out->nsection = find_sections(arena, block, out);
    qsort(out->box, out->n, sizeof *out->box, by_from);
    out->total = ls_arena_alloc(arena, out->nsection + 1u, sizeof *out->total);
    out->area = ls_arena_alloc(arena, out->n + 1u, sizeof *out->area);
    for (uint32_t k = 0; k < out->n; k++) {
        const LsBox *x = &out->box[k];
        const LsBlock *of = &block[x->block];
        double late = x->full < x->to ? (double)of->to - of->full : 0;
        out->area[k] = (double)x->size * ((double)of->to - of->from + 1 - late)
                       + (double)x->rest * late;
    }
    find_totals(arena, out);
}

uint32_t ls_boxes_part(const LsBoxes *b, uint32_t a)
{
    uint32_t last = 0, z = a;
    for (; z < b->n && (z == a || b->box[z].from <= last); z++)
        last = b->box[z].to > last ? b->box[z].to : last;
    return z;
}

enum { MOST_KEYS = 4 };

typedef struct Pref { double by[MOST_KEYS]; uint32_t box; } Pref;   /* larger comes first */

static int by_pref(const void *x, const void *y)
{
    const Pref *a = x, *b = y;
    for (int k = 0; k < MOST_KEYS; k++)
        if (a->by[k] != b->by[k])
            return a->by[k] > b->by[k] ? -1 : 1;
    return a->box < b->box ? -1 : a->box > b->box;
}

/* Returns, by box, the largest total of its sections. Row r of the table has maxima over 2^r
 * sections. */
static double *largest_totals(LsArena *arena, const LsBoxes *b)
{
    double *out = ls_arena_alloc(arena, b->n + 1u, sizeof *out);
    int64_t *row[32] = {b->total};
    for (uint32_t r = 1; (UINT64_C(1) << r) <= b->nsection; r++) {
        uint32_t half = 1u << (r - 1);
        row[r] = ls_arena_alloc(arena, b->nsection, sizeof **row);
        for (uint32_t s = 0; s + 2 * half <= b->nsection; s++) {
            int64_t left = row[r - 1][s], right = row[r - 1][s + half];
            row[r][s] = left > right ? left : right;
        }
    }
    for (uint32_t k = 0; k < b->n; k++) {
        uint32_t from = b->box[k].from, to = b->box[k].to, r = 0;
        while ((UINT64_C(2) << r) <= to - from + 1)
            r++;
        int64_t left = row[r][from], right = row[r][to + 1 - (1u << r)];
        out[k] = (double)(left > right ? left : right);
    }
    return out;
}

static double preference(const LsBoxes *b, const double *total, uint32_t k, char key)
{
    const LsBox *x = &b->box[k];
    switch (key) {
    case 'W':
        return (double)(x->to - x->from);
    case 'A':
        return b->area[k];
    case 'T':
        return total[k];
    case 'S':
        return -(double)x->from;
    default:
        return (double)x->size;
    }
}

void ls_boxes_rank(LsArena *arena, const LsBoxes *b, const char *key, uint32_t *rank)
{
    Pref *pref = ls_arena_alloc(arena, b->n + 1u, sizeof *pref);
    double *total = largest_totals(arena, b);
    for (uint32_t k = 0; k < b->n; k++) {
        pref[k].box = k;
        for (int j = 0; j < MOST_KEYS && key[j] != '\0'; j++)
            pref[k].by[j] = preference(b, total, k, key[j]);
    }
    qsort(pref, b->n, sizeof *pref, by_pref);
    for (uint32_t k = 0; k < b->n; k++)
        rank[pref[k].box] = k;
}
