/* scheduler/offsets.c -- two-dimensional packing by list placement and squeaky-wheel search.
 *
 * Blocks are placed one by one, each at the lowest (or tightest) gap between the placed blocks that live
 * at the same time. What matters is the order. Several classic ones are tried; then the blocks that ended
 * above the goal are moved forward in the order and everything is placed again (Joslin & Clements 1999),
 * with a fixed number of rounds, so that the result depends on the input alone. */
#include "scheduler/offsets.h"

#include <stdlib.h>
#include <string.h>

typedef struct Item {           /* a block with what orders compare */
    int64_t size;
    uint32_t from, to, id;
    int64_t key;                /* placed by falling key, then size, then id */
} Item;

typedef struct Gap { int64_t lo, hi; } Gap;     /* a placed neighbour */

typedef struct Pack {
    LsArena *arena;
    const LsBlock *block;
    uint32_t n;
    int64_t alignment, good, best;
    uint32_t *at, *near;        /* rows of blocks that live at the same time, by block */
    Item *item;
    Gap *gap;
    int64_t *offset;            /* being made; -1: not placed */
    int64_t *result;
} Pack;

static int by_key(const void *x, const void *y)
{
    const Item *a = x, *b = y;
    if (a->key != b->key)
        return a->key > b->key ? -1 : 1;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int by_start(const void *x, const void *y)
{
    const Item *a = x, *b = y;
    return a->from != b->from ? (a->from < b->from ? -1 : 1) : a->id < b->id ? -1 : a->id > b->id;
}

/* Rows of neighbours: sweep over time with the list of blocks that are there. */
static void find_neighbours(Pack *p)
{
    uint32_t *now = ls_arena_alloc(p->arena, p->n + 1u, sizeof *now), nnow;
    p->at = ls_arena_alloc(p->arena, p->n + 2u, sizeof *p->at);
    qsort(p->item, p->n, sizeof *p->item, by_start);
    for (int pass = 0; pass < 2; pass++) {
        nnow = 0;
        for (uint32_t k = 0; k < p->n; k++) {
            uint32_t b = p->item[k].id, left = 0;
            for (uint32_t j = 0; j < nnow; j++)
                if (p->block[now[j]].to >= p->block[b].from)
                    now[left++] = now[j];
            nnow = left;
            for (uint32_t j = 0; j < nnow; j++) {
                if (pass == 0) {
                    p->at[b + 2]++;
                    p->at[now[j] + 2]++;
                } else {
                    p->near[p->at[b + 1]++] = now[j];
                    p->near[p->at[now[j] + 1]++] = b;
                }
            }
            now[nnow++] = b;
        }
        for (uint32_t b = 2; pass == 0 && b < p->n + 2; b++)
            p->at[b] += p->at[b - 1];
        if (pass == 0)
            p->near = ls_arena_alloc(p->arena, p->at[p->n + 1] + 1u, sizeof *p->near);
    }
}

static int by_lo(const void *x, const void *y)
{
    const Gap *a = x, *b = y;
    return a->lo < b->lo ? -1 : a->lo > b->lo ? 1 : a->hi < b->hi ? -1 : a->hi > b->hi;
}

static void sort_gaps(Gap *g, uint32_t n)
{
    if (n > 24) {
        qsort(g, n, sizeof *g, by_lo);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        Gap x = g[i];
        uint32_t j = i;
        for (; j > 0 && by_lo(&x, &g[j - 1]) < 0; j--)
            g[j] = g[j - 1];
        g[j] = x;
    }
}

/* The lowest gap that takes block b; with tight, the smallest one. */
static int64_t find_place(Pack *p, uint32_t b, bool tight)
{
    uint32_t n = 0;
    for (uint32_t k = p->at[b]; k < p->at[b + 1]; k++) {
        uint32_t o = p->near[k];
        if (p->offset[o] >= 0)
            p->gap[n++] = (Gap){p->offset[o], p->offset[o] + p->block[o].size};
    }
    sort_gaps(p->gap, n);
    int64_t off = 0, best = -1, room = INT64_MAX, size = p->block[b].size;
    for (uint32_t k = 0; k < n; k++) {
        if (off + size <= p->gap[k].lo) {
            if (!tight)
                return off;
            if (p->gap[k].lo - off < room) {
                room = p->gap[k].lo - off;
                best = off;
            }
        }
        if (p->gap[k].hi > off)
            off = (p->gap[k].hi + p->alignment - 1) / p->alignment * p->alignment;
    }
    return best >= 0 ? best : off;
}

/* Places all by the order of p->item; keeps the result if it is the best so far. */
static int64_t place_all(Pack *p, bool tight)
{
    int64_t end = 0;
    for (uint32_t b = 0; b < p->n; b++)
        p->offset[b] = -1;
    for (uint32_t k = 0; k < p->n; k++) {
        uint32_t b = p->item[k].id;
        p->offset[b] = find_place(p, b, tight);
        if (p->offset[b] + p->block[b].size > end)
            end = p->offset[b] + p->block[b].size;
    }
    if (end < p->best) {
        p->best = end;
        memcpy(p->result, p->offset, p->n * sizeof *p->result);
    }
    return end;
}

enum { BY_SIZE, BY_AREA, BY_SPAN, BY_START, ORDERS };

static void set_order(Pack *p, int order)
{
    for (uint32_t k = 0; k < p->n; k++) {
        Item *it = &p->item[k];
        int64_t span = (int64_t)(it->to - it->from) + 1;
        it->key = order == BY_SIZE ? it->size : order == BY_SPAN ? span : -(int64_t)it->from;
        if (order == BY_AREA)                       /* in doubles: the product may not fit */
            it->key = (int64_t)((double)it->size * (double)span / (double)(p->n + 1));
    }
    qsort(p->item, p->n, sizeof *p->item, by_key);
}

/* From the present order: what ends above the goal goes forward, ever further the more often. */
static void search(Pack *p, bool tight, int rounds)
{
    for (uint32_t k = 0; k < p->n; k++)             /* key = place in the order, from the end */
        p->item[k].key = 16 * (int64_t)(p->n - k);
    int64_t floor = p->good;
    for (int r = 0; r < rounds && p->best > p->good; r++) {
        int64_t end = place_all(p, tight);
        for (uint32_t k = 0; k < p->n; k++) {
            Item *it = &p->item[k];
            int64_t mine = p->offset[it->id] + it->size;
            if (mine > floor && it->size > 0)
                it->key += 16 * (int64_t)(mine == end ? p->n / 2 + 1 : p->n / 8 + 1);
        }
        qsort(p->item, p->n, sizeof *p->item, by_key);
    }
}

int64_t ls_offsets_bound(const LsBlock *block, uint32_t n)
{
    uint32_t last = 0;
    for (uint32_t b = 0; b < n; b++)
        last = block[b].to > last ? block[b].to : last;
    int64_t *sum = calloc(last + 2u, sizeof *sum), used = 0, peak = 0;
    for (uint32_t b = 0; b < n && sum != NULL; b++) {
        sum[block[b].from] += block[b].size;
        sum[block[b].to + 1] -= block[b].size;
    }
    for (uint32_t s = 0; s <= last && sum != NULL; s++) {
        used += sum[s];
        peak = used > peak ? used : peak;
    }
    free(sum);
    return peak;
}

int64_t ls_offsets(const LsBlock *block, uint32_t n, int64_t alignment, int64_t good,
                   int64_t *offset)
{
    Pack p = {.arena = ls_arena_new(), .block = block, .n = n, .alignment = alignment,
              .good = good, .best = INT64_MAX, .result = offset};
    p.item = ls_arena_alloc(p.arena, n + 1u, sizeof *p.item);
    p.gap = ls_arena_alloc(p.arena, n + 1u, sizeof *p.gap);
    p.offset = ls_arena_alloc(p.arena, n + 1u, sizeof *p.offset);
    for (uint32_t b = 0; b < n; b++)
        p.item[b] = (Item){block[b].size, block[b].from, block[b].to, b, 0};
    find_neighbours(&p);
    int best_order = 0;
    bool best_tight = false;
    for (int order = 0; order < ORDERS && p.best > good; order++)
        for (int tight = 0; tight < 2 && p.best > good; tight++) {
            int64_t before = p.best;
            set_order(&p, order);
            if (place_all(&p, tight) < before) {
                best_order = order;
                best_tight = tight;
            }
        }
    /* about the same work for every input */
    int64_t work = (int64_t)p.at[n + 1] + n + 1;
    int rounds = (int)(12000000 / work);
    rounds = rounds > 200 ? 200 : rounds < 4 ? 4 : rounds;
    set_order(&p, best_order);
    search(&p, best_tight, rounds);
    set_order(&p, BY_SIZE);
    search(&p, false, rounds / 2);
    ls_arena_free(p.arena);
    return n ? p.best : 0;
}
