/* scheduler/offsets.c -- two-dimensional packing by list placement and squeaky-wheel search.
 *
 * Blocks are placed one by one, each at the lowest (or tightest) gap between the placed blocks
 * that live at the same time. What matters is the order. Several classic ones are tried; then
 * the blocks that ended above the goal are moved forward in the order and everything is placed
 * again (Joslin & Clements 1999), with a fixed number of rounds, so that the result depends on
 * the input alone. */
#include "scheduler/offsets.h"

#include <stdlib.h>
#include <string.h>

typedef struct Item {           /* a block with what orders compare */
    int64_t size;
    uint32_t from, to, id;
    int64_t key;                /* placed by falling key, then size, then id */
} Item;

typedef struct Placed { int64_t lo, hi; uint32_t from, to; } Placed;

typedef struct Pack {
    const LsBlock *block;
    uint32_t n;
    int64_t alignment, good, best;
    Item *item;
    Placed *placed; uint32_t nplaced;   /* by rising lo */
    int64_t *offset;            /* being made */
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

/* The lowest gap that takes block b; with tight, the smallest one. */
static int64_t find_place(const Pack *p, const LsBlock *b, bool tight)
{
    int64_t off = 0, best = -1, room = INT64_MAX;
    for (uint32_t k = 0; k < p->nplaced; k++) {
        const Placed *o = &p->placed[k];
        if (o->to < b->from || o->from > b->to)
            continue;
        if (off + b->size <= o->lo) {
            if (!tight)
                return off;
            if (o->lo - off < room) {
                room = o->lo - off;
                best = off;
            }
        }
        if (o->hi > off)
            off = (o->hi + p->alignment - 1) / p->alignment * p->alignment;
    }
    return best >= 0 ? best : off;
}

static void put(Pack *p, const LsBlock *b, int64_t lo)
{
    uint32_t a = 0, z = p->nplaced;
    while (a < z) {                                 /* first place with a larger lo */
        uint32_t mid = (a + z) / 2;
        if (p->placed[mid].lo <= lo)
            a = mid + 1;
        else
            z = mid;
    }
    memmove(p->placed + a + 1, p->placed + a, (p->nplaced - a) * sizeof *p->placed);
    p->placed[a] = (Placed){lo, lo + b->size, b->from, b->to};
    p->nplaced++;
}

/* Places all by the order of p->item; keeps the result if it is the best so far. */
static int64_t place_all(Pack *p, bool tight)
{
    int64_t end = 0;
    p->nplaced = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const LsBlock *b = &p->block[p->item[k].id];
        int64_t lo = b->size ? find_place(p, b, tight) : 0;
        p->offset[p->item[k].id] = lo;
        if (b->size)
            put(p, b, lo);
        end = lo + b->size > end ? lo + b->size : end;
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
    LsArena *scratch = ls_arena_new();
    Pack p = {.block = block, .n = n, .alignment = alignment, .good = good, .best = INT64_MAX,
              .result = offset};
    p.item = ls_arena_alloc(scratch, n + 1u, sizeof *p.item);
    p.placed = ls_arena_alloc(scratch, n + 1u, sizeof *p.placed);
    p.offset = ls_arena_alloc(scratch, n + 1u, sizeof *p.offset);
    for (uint32_t b = 0; b < n; b++)
        p.item[b] = (Item){block[b].size, block[b].from, block[b].to, b, 0};
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
    int64_t work = (int64_t)n * n + 1000;
    int rounds = work > 20000000 ? 4 : (int)(80000000 / work);
    rounds = rounds > 200 ? 200 : rounds;
    set_order(&p, best_order);
    search(&p, best_tight, rounds);
    set_order(&p, BY_SIZE);
    search(&p, false, rounds / 2);
    ls_arena_free(scratch);
    return n ? p.best : 0;
}
