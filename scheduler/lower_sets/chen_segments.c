/* scheduler/lower_sets/chen_segments.c -- the segments of Chen et al. 2016 (arXiv:1604.06174): cuts
 * where the rest of the forward pass reads a single vertex, and sqrt(n) even parts. */
#include "scheduler/lower_sets/partition_dp.h"

#include <math.h>
#include <string.h>

typedef struct Chen {
    const LsForward *f;
    LsArena *arena;
    uint64_t *prefix;           /* row v: vertices 0 .. v */
    int64_t *sum;               /* bytes of vertices 0 .. v */
    uint32_t *cut, ncut;        /* last vertices of prefixes with one boundary vertex */
} Chen;

static void find_cuts(Chen *c)
{
    const LsForward *f = c->f;
    uint32_t *gone = ls_arena_alloc(c->arena, f->n + 1u, sizeof *gone), open = 0;
    for (uint32_t v = 0; v < f->n; v++) {           /* gone[u]: vertices last read by u */
        uint32_t last = v;
        for (uint32_t k = f->succ.at[v]; k < f->succ.at[v + 1]; k++)
            last = f->succ.id[k] > last ? f->succ.id[k] : last;
        gone[last] += last > v;
        open += last > v;
        open -= gone[v];
        if (open == 1 && v + 1 < f->n)
            c->cut[c->ncut++] = v;
    }
}

static void add(Chen *c, LsStrategies *to, const uint32_t *end, uint32_t n)
{
    const LsForward *f = c->f;
    LsStrategy s = {.cut = ls_arena_alloc(c->arena, n + 1u, sizeof *s.cut)};
    for (uint32_t i = 0; i < n; i++)
        s.cut[s.ncut++] = c->prefix + (size_t)end[i] * f->nword;
    s.cut[s.ncut++] = c->prefix + (size_t)(f->n - 1) * f->nword;
    to->item[to->n++] = s;
}

LsStrategies ls_chen(LsArena *arena, const LsForward *f)
{
    enum { SIZES = 64 };
    LsStrategies out = {ls_arena_alloc(arena, SIZES + 1, sizeof *out.item), 0};
    if (f->n == 0)
        return out;
    Chen c = {f, arena, NULL, NULL, NULL, 0};
    c.prefix = ls_arena_alloc(arena, (size_t)f->n * f->nword, sizeof *c.prefix);
    c.sum = ls_arena_alloc(arena, f->n, sizeof *c.sum);
    c.cut = ls_arena_alloc(arena, f->n, sizeof *c.cut);
    uint32_t *end = ls_arena_alloc(arena, f->n, sizeof *end);
    for (uint32_t v = 0; v < f->n; v++) {
        uint64_t *row = c.prefix + (size_t)v * f->nword;
        if (v > 0)
            memcpy(row, row - f->nword, f->nword * sizeof *row);
        ls_bit_add(row, v);
        c.sum[v] = f->mem[v] + (v ? c.sum[v - 1] : 0);
    }
    find_cuts(&c);
    for (int64_t part = 1; part <= SIZES; part++) {
        int64_t start = 0;
        uint32_t n = 0;
        for (uint32_t k = 0; k < c.ncut; k++)
            if ((double)(c.sum[c.cut[k]] - start)
                > (double)c.sum[f->n - 1] * (double)part / SIZES) {
                end[n++] = c.cut[k];
                start = c.sum[c.cut[k]];
            }
        add(&c, &out, end, n);
    }
    uint32_t parts = (uint32_t)lround(sqrt(f->n)), n = 0;
    for (uint32_t i = 1; i < parts; i++)
        end[n++] = (uint32_t)((uint64_t)f->n * i / parts) - 1;
    add(&c, &out, end, n);
    return out;
}
