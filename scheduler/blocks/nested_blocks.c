/* scheduler/blocks/nested_blocks.c -- see the header.
 *
 * A range of blocks without its forward values in memory runs backward, within a number of bytes,
 * in one of three ways:
 *   anew    every value is recomputed when it is read;
 *   apart   forward again up to a block k, keeping the values that later blocks read; then the
 * blocks from k on with the remaining bytes; then the blocks before k with all bytes; keeping
 * forward again up to k, keeping an option of these blocks; the blocks from k on; then backward.
 * The last two also apply to the whole row, whose forward part has been run. `apart` is the
 * recursion of Chen and of treeverse, `keeping` one level of it. A dynamic program finds the
 * cheapest way for every range and number of bytes, as rotor does for chains of layers (Beaumont et
 * al., TOMS 2024); here for any graph with cuts. */
#include "scheduler/blocks/nested_blocks.h"

#include <math.h>

#include "scheduler/blocks/block_keep.h"

enum { CELLS = 192 };           /* cells of bytes, from 0 to the top */

typedef enum { ANEW, APART, KEEPING } Way;

typedef struct Choice { uint8_t way, option; uint16_t at; } Choice;

typedef struct Nest {
    LsCandidates *pool;
    const LsBlockRanges *r;
    LsArena *arena;
    uint32_t n;                 /* blocks */
    int64_t unit;               /* bytes per cell */
    LsKeepOptions *anew;        /* by range, as options are */
    LsPass *pass;               /* by from and to */
    int64_t *cross;             /* by block, plus one: bytes of gradients on their way to earlier
                                 * blocks */
    double *ahead;              /* by block, plus one: cost of the nodes of earlier blocks before
                                 * the turn */
    double *cost; Choice *choice;   /* by from, to and cell. Range from .. n ends the row: its
                                     * forward part has been run. No choice if the cost is
                                     * INFINITY */
    LsPhase *phase; uint32_t nphase, phase_room;
} Nest;

static size_t index_of(const Nest *z, uint32_t from, uint32_t to)
{
    return (size_t)from * (z->n + 1) + to;
}

static double *cost_of(const Nest *z, uint32_t from, uint32_t to)
{
    return &z->cost[index_of(z, from, to) * CELLS];
}

static Choice *choice_of(const Nest *z, uint32_t from, uint32_t to)
{
    return &z->choice[index_of(z, from, to) * CELLS];
}

static uint32_t cells(const Nest *z, int64_t bytes)
{
    int64_t n = (bytes + z->unit - 1) / z->unit;
    return n < CELLS ? (uint32_t)n : CELLS;
}

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* ---- the dynamic program ---- */

static void try_anew(Nest *z, uint32_t from, uint32_t to)
{
    const LsKeepOptions *o = &z->anew[ls_block_ranges_place(z->r, from, to)];
    double *cost = cost_of(z, from, to);
    for (uint32_t k = 0; k < o->n; k++)
        for (uint32_t m = cells(z, o->item[k].peak); m < CELLS; m++)
            if (o->item[k].again < cost[m]) {
                cost[m] = o->item[k].again;
                choice_of(z, from, to)[m] = (Choice){ANEW, (uint8_t)k, (uint16_t)to};
            }
}

/* again: cost of the blocks from .. at - 1, forward or by the option; least: cells that this takes;
 * kept: cells fewer for the later blocks; first: by cell, the cost of the earlier blocks
 * afterwards, or NULL. */
static void try_way(Nest *z, uint32_t from, uint32_t to, Choice way, double again, uint32_t least,
                    uint32_t kept, const double *first)
{
    const double *later = cost_of(z, way.at, to);
    double *cost = cost_of(z, from, to);
    Choice *choice = choice_of(z, from, to);
    for (uint32_t m = larger(least, kept); m < CELLS; m++) {
        double sum = again + later[m - kept] + (first != NULL ? first[m] : 0);
        if (sum < cost[m]) {
            cost[m] = sum;
            choice[m] = way;
        }
    }
}

static void try_ways(Nest *z, uint32_t from, uint32_t to, uint32_t at, bool row)
{
    const LsPass *pass = &z->pass[index_of(z, from, at)];
    int64_t there = row ? 0 : z->cross[to];
    if (at < to)
        try_way(z, from, to, (Choice){APART, 0, (uint16_t)at}, row ? 0 : pass->cost,
                cells(z, pass->peak + there), cells(z, pass->kept), cost_of(z, from, at));
    if (at - from > z->r->longest)
        return;
    const LsKeepOptions *o = ls_block_ranges_at(z->r, from, at);
    for (uint32_t k = 0; k < o->n && k <= UINT8_MAX; k++) {
        const LsKeepOption *x = &o->item[k];
        int64_t forward = pass->peak + x->kept - pass->kept + there;
        try_way(z, from, to, (Choice){KEEPING, (uint8_t)k, (uint16_t)at},
                x->again + (row ? 0 : z->ahead[at] - z->ahead[from]),
                cells(z, forward > x->peak ? forward : x->peak), cells(z, x->kept), NULL);
    }
}

/* Solves shorter ranges first. Ranges that end the row have had their forward part run. */
static void solve(Nest *z)
{
    uint32_t n = z->n;
    for (size_t k = 0; k < (size_t)(n + 1) * (n + 1) * CELLS; k++)
        z->cost[k] = INFINITY;
    for (uint32_t m = 0; m < CELLS; m++)
        for (uint32_t to = 0; to <= n; to++)
            cost_of(z, to, to)[m] = 0;
    for (uint32_t length = 1; length <= n; length++)
        for (uint32_t from = 0; from + length <= n; from++) {
            uint32_t to = from + length;
            bool row = to == n;
            if (!row && length <= z->r->longest)
                try_anew(z, from, to);
            for (uint32_t at = from + 1; at <= to; at++)
                if (at < to || row)
                    try_ways(z, from, to, at, row);
        }
}

/* ---- the sequence ---- */

static void add_phase(Nest *z, uint32_t from, uint32_t to, const LsKeepOption *option)
{
    z->phase = ls_arena_grow(z->arena, z->phase, z->nphase, z->nphase + 1u, sizeof *z->phase,
                             &z->phase_room);
    z->phase[z->nphase++] = (LsPhase){from, to, option};
}

static void add_phases(Nest *z, uint32_t from, uint32_t to, uint32_t cell)
{
    if (from == to)
        return;
    Choice c = choice_of(z, from, to)[cell];
    if (c.way == ANEW) {
        add_phase(z, from, to, &z->anew[ls_block_ranges_place(z->r, from, to)].item[c.option]);
        return;
    }
    const LsKeepOption *option =
        c.way == KEEPING ? &ls_block_ranges_at(z->r, from, c.at)->item[c.option] : NULL;
    int64_t kept = option ? option->kept : z->pass[index_of(z, from, c.at)].kept;
    if (to < z->n)
        add_phase(z, from, c.at, NULL);
    add_phases(z, c.at, to, cell - cells(z, kept));
    if (option != NULL)
        add_phase(z, from, c.at, option);
    else
        add_phases(z, from, c.at, cell);
}

/* ---- */

static void measure(Nest *z)
{
    const LsBlocks *b = z->r->b;
    const LsProb *p = b->p;
    for (uint32_t from = 0; from < z->n; from++)
        for (uint32_t to = from + 1; to <= z->n; to++) {
            z->pass[index_of(z, from, to)] = ls_block_pass(z->r->w, from, to);
            if (to - from <= z->r->longest)
                z->anew[ls_block_ranges_place(z->r, from, to)] =
                    ls_block_anew(z->arena, z->r->w, from, to);
        }
    for (uint32_t k = 0; k <= z->n; k++)
        for (uint32_t j = b->cross.at[k]; j < b->cross.at[k + 1]; j++)
            z->cross[k] += p->size[b->cross.id[j]];
    for (uint32_t k = 0; k < z->n; k++) {
        z->ahead[k + 1] = z->ahead[k];
        for (uint32_t s = b->ahead.at[k]; s < b->ahead.at[k + 1]; s++)
            z->ahead[k + 1] += p->cost[b->ahead.id[s]];
    }
}

/* Offers the cheapest nestings for targets from the top down to half of it; returns whether there
 * was any. */
static bool offer(Nest *z, double top)
{
    static const double step = 0.97;
    double last = -1;
    z->unit = (int64_t)(top / CELLS) + 1;
    solve(z);
    for (double part = 1; part > 0.5; part *= step) {
        uint32_t cell = (uint32_t)(part * (CELLS - 1));
        double cost = cost_of(z, 0, z->n)[cell];
        if (cost == INFINITY)
            return last >= 0;
        if (cost == last)
            continue;
        last = cost;
        z->nphase = 0;
        add_phases(z, 0, z->n, cell);
        ls_block_ranges_offer(z->pool, z->r, z->phase, z->nphase);
    }
    return true;
}

void ls_nested_offer(LsCandidates *pool, const LsBlockRanges *r)
{
    enum { HALVINGS = 3 };
    uint32_t n = r->b->n;
    LsArena *arena = ls_arena_new();
    size_t pairs = (size_t)(n + 1) * (n + 1);
    Nest z = {.pool = pool, .r = r, .arena = arena, .n = n};
    z.anew = ls_arena_alloc(arena, (size_t)n * r->longest, sizeof *z.anew);
    z.pass = ls_arena_alloc(arena, pairs, sizeof *z.pass);
    z.cross = ls_arena_alloc(arena, n + 1u, sizeof *z.cross);
    z.ahead = ls_arena_alloc(arena, n + 1u, sizeof *z.ahead);
    z.cost = ls_arena_alloc(arena, pairs * CELLS, sizeof *z.cost);
    z.choice = ls_arena_alloc(arena, pairs * CELLS, sizeof *z.choice);
    measure(&z);
    double top = (double)pool->cand[0].peak / 2;
    for (int k = 0; k < HALVINGS && offer(&z, top); k++)
        top /= 2;
    ls_arena_free(arena);
}
