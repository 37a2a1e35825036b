/* scheduler/pipeline/stage_packing.c -- see the header.
 *
 * Bytes of a region count once for each copy, so the regions with most copies are packed first, as
 * tightly as possible. Then they take blocks of other regions into their free places, those first
 * that make a region as large as it is. */
#include "scheduler/pipeline/stage_packing.h"

#include <stdlib.h>

#include "scheduler/packing/offsets.h"

typedef struct Region {
    uint32_t copies;
    bool *has;                  /* by kind */
    int64_t bytes;
    uint32_t *in, n;            /* placed blocks */
} Region;

typedef struct Pack {
    LsArena *tmp;
    const LsPipeWindows *w;
    uint32_t *copies;           /* by two kinds */
    const LsBlock *block;
    const uint32_t *kind;
    uint32_t n, steps;
    int64_t alignment;
    Region region[LS_PIPE_REGIONS]; uint32_t nregion;      /* by copies, rising */
    uint32_t *region_of;        /* by block */
    bool *placed;               /* by block */
    int64_t *at;                /* by block: offset in its region */
} Pack;

static uint32_t copies_of(const Pack *x, uint32_t a, uint32_t b)
{
    return x->copies[(size_t)a * x->w->n + b];
}

static void find_copies(Pack *x)
{
    const uint32_t n = x->w->n;
    x->copies = ls_arena_alloc(x->tmp, (size_t)n * n + 1, sizeof *x->copies);
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b <= a; b++)
            x->copies[(size_t)a * n + b] = x->copies[(size_t)b * n + a] =
                ls_pipe_copies(x->w, a, b);
}

/* Copies of the region with which a kind may be in it, too. */
static uint32_t copies_with(const Pack *x, const Region *r, uint32_t kind)
{
    uint32_t copies = copies_of(x, kind, kind);
    for (uint32_t k = 0; k < x->w->n; k++)
        if (r->has[k] && copies_of(x, k, kind) > copies)
            copies = copies_of(x, k, kind);
    return copies;
}

static bool takes(const Pack *x, uint32_t region, uint32_t kind)
{
    return copies_with(x, &x->region[region], kind) <= x->region[region].copies;
}

static void open_region(Pack *x, uint32_t copies)
{
    x->region[x->nregion++] = (Region){copies, ls_arena_alloc(x->tmp, x->w->n + 1u, 1), 0,
                                       ls_arena_alloc(x->tmp, x->n + 1u, sizeof(uint32_t)), 0};
}

/* A region of its own number of copies, if there is one that takes the kind or room for another;
 * else the last one gets as many copies as it must. */
static uint32_t region_for(Pack *x, uint32_t kind)
{
    const uint32_t copies = copies_of(x, kind, kind);
    uint32_t r = 0;
    while (r < x->nregion && !(x->region[r].copies == copies && takes(x, r, kind)))
        r++;
    if (r == x->nregion && r < LS_PIPE_REGIONS)
        open_region(x, copies);
    if (r == LS_PIPE_REGIONS) {
        r--;
        const uint32_t need = copies_with(x, &x->region[r], kind);
        x->region[r].copies = need > x->region[r].copies ? need : x->region[r].copies;
    }
    x->region[r].has[kind] = true;
    return r;
}

/* Regions for the kinds of all blocks, those with fewer copies first. */
static void make_regions(Pack *x)
{
    uint32_t *of = ls_arena_alloc(x->tmp, x->w->n + 1u, sizeof *of), most = 1;
    bool *used = ls_arena_alloc(x->tmp, x->w->n + 1u, 1);
    for (uint32_t k = 0; k < x->n; k++)
        used[x->kind[k]] |= x->block[k].size > 0;
    open_region(x, 1);
    for (uint32_t kind = 0; kind < x->w->n; kind++)
        most = copies_of(x, kind, kind) > most ? copies_of(x, kind, kind) : most;
    for (uint32_t copies = 1; copies <= most; copies++)
        for (uint32_t kind = 0; kind < x->w->n; kind++)
            if (used[kind] && copies_of(x, kind, kind) == copies)
                of[kind] = region_for(x, kind);
    for (uint32_t k = 0; k < x->n; k++)
        x->region_of[k] = x->block[k].size > 0 ? of[x->kind[k]] : 0;
}

/* ---- places ---- */

static int64_t size_of(const Pack *x, uint32_t k)
{
    return ls_align(x->block[k].size, x->alignment);
}

static bool meet(const LsBlock *a, const LsBlock *b)
{
    return a->from <= b->to && b->from <= a->to;
}

/* The bytes of a placed block that a block which begins at `from` has to spare. */
static int64_t size_from(const Pack *x, uint32_t k, uint32_t from)
{
    const LsBlock *b = &x->block[k];
    return b->rest > 0 && from > b->full ? ls_align(b->rest, x->alignment) : size_of(x, k);
}

/* Whether the block may lie at `at`. Else *next: the nearest offset above or, with `down`, below,
 * that the block in its way leaves. */
static bool is_free(const Pack *x, uint32_t region, uint32_t k, int64_t at, bool down,
                    int64_t *next)
{
    for (uint32_t i = 0; i < x->region[region].n; i++) {
        const uint32_t j = x->region[region].in[i];
        if (!meet(&x->block[j], &x->block[k]))
            continue;
        const int64_t lo = x->at[j], hi = lo + size_from(x, j, x->block[k].from);
        if (at < hi && lo < at + size_of(x, k)) {
            *next = down ? lo - size_of(x, k) : hi;
            return false;
        }
    }
    return true;
}

static void put(Pack *x, uint32_t region, uint32_t k, int64_t at)
{
    x->at[k] = at;
    x->placed[k] = true;
    x->region[region].in[x->region[region].n++] = k;
}

/* The lowest place of the block in the region. */
static int64_t lowest(const Pack *x, uint32_t region, uint32_t k)
{
    int64_t at = 0;
    while (!is_free(x, region, k, at, false, &at))
        ;
    return at;
}

/* The highest place below the region's end; -1: there is none. */
static int64_t highest(const Pack *x, uint32_t region, uint32_t k)
{
    int64_t at = x->region[region].bytes - size_of(x, k);
    while (at >= 0 && !is_free(x, region, k, at, true, &at))
        ;
    return at;
}

/* Blocks in the order of their steps, each as low as it can: what is needed from one phase to
 * another then lies in a stack, whose top is free before and after. Returns the end. */
static int64_t stack(Pack *x, uint32_t region, const uint32_t *of, uint32_t m)
{
    int64_t end = 0;
    for (uint32_t k = 0; k < m; k++) {
        put(x, region, of[k], lowest(x, region, of[k]));
        end = x->at[of[k]] + size_of(x, of[k]) > end ? x->at[of[k]] + size_of(x, of[k]) : end;
    }
    return end;
}

typedef struct Order { uint32_t from, to, block; } Order;

static int by_steps(const void *a, const void *b)
{
    const Order *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to > y->to ? -1 : 1;
    return x->block < y->block ? -1 : x->block > y->block;
}

/* The blocks of a region by their steps. Returns their number. */
static uint32_t list_blocks(const Pack *x, uint32_t region, uint32_t *of)
{
    Order *row = ls_arena_alloc(x->tmp, x->n + 1u, sizeof *row);
    uint32_t m = 0;
    for (uint32_t k = 0; k < x->n; k++)
        if (x->region_of[k] == region && x->block[k].size > 0)
            row[m++] = (Order){x->block[k].from, x->block[k].to, k};
    if (m > 0)
        qsort(row, m, sizeof *row, by_steps);
    for (uint32_t k = 0; k < m; k++)
        of[k] = row[k].block;
    return m;
}

static void pack_region(Pack *x, uint32_t region)
{
    uint32_t *of = ls_arena_alloc(x->tmp, x->n + 1u, sizeof *of);
    const uint32_t m = list_blocks(x, region, of);
    LsBlock *some = ls_arena_alloc(x->tmp, m + 1u, sizeof *some);
    int64_t *at = ls_arena_alloc(x->tmp, m + 1u, sizeof *at);
    for (uint32_t k = 0; k < m; k++) {
        some[k] = x->block[of[k]];
        some[k].size = size_of(x, of[k]);
    }
    const int64_t least = m > 0 ? ls_offsets_bound(some, m) : 0;
    int64_t end = x->region[region].copies > 1 ? stack(x, region, of, m) : INT64_MAX;
    if (m > 0 && end > least) {
        const int64_t packed = ls_offsets(some, m, x->alignment, least, 0, LS_PACK_FULL, at);
        x->region[region].n = packed < end ? 0 : x->region[region].n;
        for (uint32_t k = 0; packed < end && k < m; k++)
            put(x, region, of[k], at[k]);
        end = packed < end ? packed : end;
    }
    x->region[region].bytes = m > 0 ? ls_align(end, x->alignment) : 0;
}

/* ---- guests ---- */

/* Sets load[s] to the bytes of the region's blocks at step s, without those that are placed.
 * Returns the step with most. */
static uint32_t find_peak(const Pack *x, uint32_t region, int64_t *load)
{
    uint32_t peak = 0;
    for (uint32_t s = 0; s <= x->steps; s++)
        load[s] = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        const LsBlock *b = &x->block[k];
        if (x->region_of[k] != region || x->placed[k])
            continue;
        load[b->from] += size_of(x, k);
        load[b->to + 1] -= size_of(x, k);
    }
    for (uint32_t s = 1; s < x->steps; s++) {
        load[s] += load[s - 1];
        peak = load[s] > load[peak] ? s : peak;
    }
    return peak;
}

/* Moves the largest block at the region's peak that another region has a place for. Returns whether
 * there was one. */
static bool move_one(Pack *x, uint32_t from, uint32_t to, int64_t *load)
{
    const uint32_t peak = find_peak(x, from, load);
    uint32_t best = x->n;
    int64_t at = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        const LsBlock *b = &x->block[k];
        if (x->region_of[k] != from || b->size == 0 || b->from > peak || b->to < peak
            || (best < x->n && b->size <= x->block[best].size) || !takes(x, to, x->kind[k]))
            continue;
        const int64_t place = highest(x, to, k);
        if (place >= 0) {
            best = k;
            at = place;
        }
    }
    if (best == x->n)
        return false;
    x->region_of[best] = to;
    put(x, to, best, at);
    x->region[to].has[x->kind[best]] = true;
    return true;
}

/* The least that all regions can take: each block lies in some copy, and what a region has more
 * copies of counts again. */
static int64_t least_of(const Pack *x)
{
    LsBlock *some = ls_arena_alloc(x->tmp, x->n + 1u, sizeof *some);
    int64_t bytes = 0;
    for (uint32_t r = 0; r <= x->nregion; r++) {
        uint32_t m = 0;
        for (uint32_t k = 0; k < x->n; k++)
            if (r == x->nregion || x->region_of[k] == r)
                some[m++] = x->block[k];
        if (m > 0)
            bytes += ls_offsets_bound(some, m) * (r == x->nregion ? 1 : x->region[r].copies - 1);
    }
    return bytes;
}

static void write(const Pack *x, int64_t *offset, LsPipeLayout *out)
{
    out->nregion = x->nregion;
    out->arena = 0;
    for (uint32_t r = 0; r < x->nregion; r++) {
        out->region[r] = (LsPipeRegion){out->arena, x->region[r].bytes, x->region[r].copies};
        out->arena += x->region[r].bytes * x->region[r].copies;
    }
    out->nplaced = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        offset[k] = x->block[k].size > 0 ? out->region[x->region_of[k]].at + x->at[k] : 0;
        if (x->block[k].size > 0)
            out->placed[out->nplaced++] =
                (LsPipePlaced){x->at[k], x->at[k] + size_of(x, k), x->kind[k], x->region_of[k]};
    }
}

static void pack_all(Pack *x)
{
    int64_t *load = ls_arena_alloc(x->tmp, x->steps + 2u, sizeof *load);
    for (uint32_t r = x->nregion; r-- > 0;) {
        pack_region(x, r);
        for (uint32_t from = r; from-- > 0;)
            while (move_one(x, from, r, load))
                ;
    }
}

/* Any valid offsets, for a layout that is not used. */
static void place_in_a_row(const Pack *x, int64_t *offset)
{
    int64_t end = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        offset[k] = end;
        end += size_of(x, k);
    }
}

bool ls_pipe_pack(const LsPipeWindows *w, const LsBlock *block, const uint32_t *kind, uint32_t n,
                  int64_t alignment, int64_t most, int64_t *offset, LsPipeLayout *out)
{
    Pack x = {.tmp = ls_arena_new(),
              .w = w,
              .block = block,
              .kind = kind,
              .n = n,
              .alignment = alignment};
    x.region_of = ls_arena_alloc(x.tmp, n + 1u, sizeof *x.region_of);
    x.placed = ls_arena_alloc(x.tmp, n + 1u, 1);
    x.at = ls_arena_alloc(x.tmp, n + 1u, sizeof *x.at);
    for (uint32_t k = 0; k < n; k++)
        x.steps = block[k].to + 1 > x.steps ? block[k].to + 1 : x.steps;
    find_copies(&x);
    make_regions(&x);
    const bool hopeless = most > 0 && least_of(&x) > most;
    if (hopeless) {
        place_in_a_row(&x, offset);
    } else {
        pack_all(&x);
        write(&x, offset, out);
    }
    ls_arena_free(x.tmp);
    return !hopeless && (most <= 0 || out->arena <= most);
}
