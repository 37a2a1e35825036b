/* scheduler/pipeline/stage_packing_kept.c -- packs a micro-batch with a plan of its own among the
 * others.
 *
 * What the others have in a copy of a region while a value of this micro-batch lives is in its way;
 * what this micro-batch would have there by the usual plan is not. Large blocks choose first. */
#include "scheduler/pipeline/stage_packing.h"

#include <stdlib.h>

#include "scheduler/packing/offsets.h"

enum { NONE = LS_PIPE_REGIONS + 1 };

typedef struct Kept {
    LsArena *tmp;
    const LsPipeWindows *w;
    const LsBlock *block;
    const uint32_t *kind;
    uint32_t n;
    int64_t alignment;
    LsPipeLayout *l;
    bool *meets;                /* by region and two kinds: of this micro-batch, of another one in
                                 * the same copy */
    uint32_t *region;           /* by block: NONE: not placed */
    int64_t *at;
} Kept;

static bool *meeting(const Kept *x, uint32_t region, uint32_t mine, uint32_t other)
{
    return &x->meets[((size_t)region * x->w->n + mine) * x->w->n + other];
}

static void find_meetings(Kept *x)
{
    x->meets = ls_arena_alloc(x->tmp, (size_t)x->l->nregion * x->w->n * x->w->n + 1, 1);
    for (uint32_t r = 0; r < x->l->nregion; r++)
        for (uint32_t a = 0; a < x->w->n; a++)
            for (uint32_t b = 0; b < x->w->n; b++)
                *meeting(x, r, a, b) = ls_pipe_first_meets(x->w, a, b, x->l->region[r].copies);
}

static int64_t size_of(const Kept *x, uint32_t k)
{
    return ls_align(x->block[k].size, x->alignment);
}

/* Whether [at, at + size) of the region is free for the block. Else *next: the end of what is in
 * its way. */
static bool is_free(const Kept *x, uint32_t region, uint32_t k, int64_t at, int64_t *next)
{
    const int64_t end = at + size_of(x, k);
    for (uint32_t j = 0; j < x->l->nplaced; j++) {
        const LsPipePlaced *p = &x->l->placed[j];
        if (p->region == region && at < p->hi && p->lo < end
            && *meeting(x, region, x->kind[k], p->kind)) {
            *next = p->hi;
            return false;
        }
    }
    for (uint32_t j = 0; j < x->n; j++) {
        if (x->region[j] != region || at >= x->at[j] + size_of(x, j) || x->at[j] >= end
            || x->block[j].from > x->block[k].to || x->block[k].from > x->block[j].to)
            continue;
        *next = x->at[j] + size_of(x, j);
        return false;
    }
    return true;
}

static bool find_place(Kept *x, uint32_t k)
{
    for (uint32_t r = 0; r < x->l->nregion; r++) {
        int64_t at = 0;
        while (at + size_of(x, k) <= x->l->region[r].bytes && !is_free(x, r, k, at, &at))
            ;
        if (at + size_of(x, k) > x->l->region[r].bytes)
            continue;
        x->region[k] = r;
        x->at[k] = at;
        return true;
    }
    return false;
}

typedef struct Order { int64_t size; uint32_t block; } Order;

static int by_size(const void *a, const void *b)
{
    const Order *x = a, *y = b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->block < y->block ? -1 : x->block > y->block;
}

/* Packs what has no place yet into a region behind the others. */
static void add_region(Kept *x)
{
    LsBlock *some = ls_arena_alloc(x->tmp, x->n + 1u, sizeof *some);
    uint32_t *of = ls_arena_alloc(x->tmp, x->n + 1u, sizeof *of), m = 0;
    int64_t *at = ls_arena_alloc(x->tmp, x->n + 1u, sizeof *at);
    for (uint32_t k = 0; k < x->n; k++)
        if (x->region[k] == NONE && x->block[k].size > 0) {
            of[m] = k;
            some[m] = x->block[k];
            some[m++].size = size_of(x, k);
        }
    if (m == 0)
        return;
    const int64_t end =
        ls_offsets(some, m, x->alignment, ls_offsets_bound(some, m), 0, LS_PACK_FULL, at);
    x->l->region[x->l->nregion] = (LsPipeRegion){x->l->arena, ls_align(end, x->alignment), 1};
    for (uint32_t k = 0; k < m; k++) {
        x->region[of[k]] = x->l->nregion;
        x->at[of[k]] = at[k];
    }
    x->l->arena += x->l->region[x->l->nregion++].bytes;
}

void ls_pipe_pack_kept(const LsPipeWindows *w, const LsBlock *block, const uint32_t *kind,
                       uint32_t n, int64_t alignment, int64_t *offset, LsPipeLayout *io)
{
    Kept x = {.tmp = ls_arena_new(),
              .w = w,
              .block = block,
              .kind = kind,
              .n = n,
              .alignment = alignment,
              .l = io};
    Order *row = ls_arena_alloc(x.tmp, n + 1u, sizeof *row);
    x.region = ls_arena_alloc(x.tmp, n + 1u, sizeof *x.region);
    x.at = ls_arena_alloc(x.tmp, n + 1u, sizeof *x.at);
    find_meetings(&x);
    for (uint32_t k = 0; k < n; k++) {
        row[k] = (Order){block[k].size, k};
        x.region[k] = NONE;
    }
    if (n > 0)
        qsort(row, n, sizeof *row, by_size);
    for (uint32_t k = 0; k < n && row[k].size > 0; k++)
        find_place(&x, row[k].block);
    add_region(&x);
    for (uint32_t k = 0; k < n; k++)
        offset[k] = block[k].size > 0 ? io->region[x.region[k]].at + x.at[k] : 0;
    ls_arena_free(x.tmp);
}
