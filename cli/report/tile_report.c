/* cli/report/tile_report.c -- see the header.
 *
 * The tiles of one kernel are nodes of the same name and kind. A region is what values in tiles
 * join. */
#include "cli/report/tile_report.h"

#include "base/json_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct Region {
    const char *from, *to;      /* names of its first and last kernel */
    uint32_t kernels;
    int64_t whole, part;        /* bytes of samples or rows of the kernel with most of them */
} Region;

typedef struct Regions {
    const LsJob *job;
    const LsGraph *g;
    uint32_t *root;             /* by node: a node of the same region */
    uint32_t *same;             /* by node: the first tile of its kernel */
    uint32_t *first, nfirst;    /* the first tiles of kernels */
    int64_t *last;              /* by first tile: where the last tile so far begins */
    int64_t *whole, *part;      /* by first tile: bytes of all tiles; of the largest */
    Region *list; uint32_t n;
} Regions;

/* A tile of a kernel; not what puts tiles together, nor a kernel that may take another's place,
 * which is named so (codegen/fusion/fused_alternatives.h). */
static bool is_tile(const LsGraph *g, uint32_t n)
{
    const LsNode *node = &g->node[n];
    return node->tile != NULL && node->op != LS_OP_PLACE && node->op != LS_OP_SLICE
           && node->computed == NULL
           && (node->name == NULL || strstr(node->name, " computing ") == NULL);
}

static uint32_t root_of(const Regions *x, uint32_t n)
{
    while (x->root[n] != n)
        n = x->root[n];
    return n;
}

static bool has_part(const LsGraph *g, LsValueId v, const LsTilePlace *of)
{
    return ls_shape(g, v)->rank > of->axis + (of->axis == 0)
           && ls_shape(g, v)->dim[of->axis] < of->of;
}

/* Node b is a tile of the kernel whose first tile is a, and which has no such tile yet. */
static bool is_of(const Regions *x, uint32_t a, uint32_t b)
{
    const LsNode *m = &x->g->node[a], *n = &x->g->node[b];
    const bool begins = m->tile->first == 0 && n->nin == m->nin + n->nout;   /* a sum */
    return x->last[a] < n->tile->first && m->op == n->op && m->nout == n->nout
           && m->phase == n->phase && (m->nin == n->nin || begins)
           && m->name != NULL && n->name != NULL && strcmp(m->name, n->name) == 0;
}

/* Bytes of the samples or rows that the node of a tile makes or reads. */
static int64_t bytes_of(const Regions *x, uint32_t n)
{
    const LsGraph *g = x->g;
    const LsTilePlace *of = g->node[n].tile;
    int64_t bytes = 0;
    for (int k = 0; k < g->node[n].nin; k++) {
        const LsValueId v = ls_in(g, (LsNodeId){n}, k);
        const uint32_t def = ls_is(v) ? g->value[v.i].def.i : 0;
        if (def != 0 && is_tile(g, def) && has_part(g, v, of))
            bytes += ls_value_bytes(g, v, x->job->target.real_bytes);
    }
    for (int k = 0; k < g->node[n].nout; k++) {
        const LsValueId v = ls_out(g, (LsNodeId){n}, k);
        if (has_part(g, v, of))
            bytes += ls_value_bytes(g, v, x->job->target.real_bytes);
    }
    return bytes;
}

static void join(Regions *x)
{
    const LsGraph *g = x->g;
    for (uint32_t n = 1; n < g->nnode; n++) {
        x->root[n] = x->same[n] = n;
        if (!is_tile(g, n))
            continue;
        for (uint32_t k = 0; k < x->nfirst && x->same[n] == n; k++)
            if (is_of(x, x->first[k], n))
                x->same[n] = x->first[k];
        if (x->same[n] == n)
            x->first[x->nfirst++] = n;
        x->last[x->same[n]] = g->node[n].tile->first;
        x->root[n] = root_of(x, x->same[n]);
        for (int k = 0; k < g->node[n].nin; k++) {
            const LsValueId v = ls_in(g, (LsNodeId){n}, k);
            const uint32_t def = ls_is(v) ? g->value[v.i].def.i : 0;
            if (def != 0 && is_tile(g, def))
                x->root[root_of(x, n)] = root_of(x, def);
        }
        const int64_t bytes = bytes_of(x, n);
        x->whole[x->same[n]] += bytes;
        x->part[x->same[n]] = bytes > x->part[x->same[n]] ? bytes : x->part[x->same[n]];
    }
}

static Region *region_of(Regions *x, uint32_t *at, uint32_t n)
{
    uint32_t *number = &at[root_of(x, n)];
    if (*number == 0) {
        x->list[x->n] = (Region){.from = x->g->node[n].name, .to = x->g->node[n].name};
        *number = ++x->n;
    }
    return &x->list[*number - 1];
}

/* Leaves out regions that have no part of a value, as those of a sum alone. */
static void drop_sums(Regions *x)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < x->n; k++)
        if (x->list[k].whole > 0)
            x->list[n++] = x->list[k];
    x->n = n;
}

static Regions find(const LsJob *job)
{
    LsArena *a = job->cx.arena;
    const LsGraph *g = job->train;
    Regions x = {.job = job, .g = g};
    x.root = ls_arena_alloc(a, g->nnode, sizeof *x.root);
    x.same = ls_arena_alloc(a, g->nnode, sizeof *x.same);
    x.first = ls_arena_alloc(a, g->nnode, sizeof *x.first);
    x.last = ls_arena_alloc(a, g->nnode, sizeof *x.last);
    x.whole = ls_arena_alloc(a, g->nnode, sizeof *x.whole);
    x.part = ls_arena_alloc(a, g->nnode, sizeof *x.part);
    x.list = ls_arena_alloc(a, g->nnode, sizeof *x.list);
    uint32_t *at = ls_arena_alloc(a, g->nnode, sizeof *at);
    join(&x);
    for (uint32_t n = 1; n < g->nnode; n++) {
        if (!is_tile(g, n) || x.same[n] != n)
            continue;
        Region *r = region_of(&x, at, n);
        r->kernels++;
        r->to = g->node[n].phase == LS_FORWARD ? g->node[n].name : r->to;
        if (x.whole[n] > r->whole) {
            r->whole = x.whole[n];
            r->part = x.part[n];
        }
    }
    drop_sums(&x);
    return x;
}

static const char *name_of(const char *name) { return name != NULL ? name : "?"; }

void ls_tile_print(const LsJob *job)
{
    const Regions x = find(job);
    LsArena *a = job->cx.arena;
    for (uint32_t k = 0; k < x.n; k++)
        printf("    %s to %s: the largest kernel reads and writes %s of the %s whole, %s in "
               "parts\n", name_of(x.list[k].from), name_of(x.list[k].to),
               ls_bytes_text(a, x.list[k].whole), ls_tiling_of(&job->tiling),
               ls_bytes_text(a, x.list[k].part));
}

const char *ls_tile_json(const LsJob *job)
{
    const Regions x = find(job);
    cJSON *list = cJSON_CreateArray();
    for (uint32_t k = 0; k < x.n; k++) {
        cJSON *r = cJSON_CreateObject();
        cJSON_AddStringToObject(r, "from", name_of(x.list[k].from));
        cJSON_AddStringToObject(r, "to", name_of(x.list[k].to));
        cJSON_AddNumberToObject(r, "kernels", x.list[k].kernels);
        cJSON_AddNumberToObject(r, "whole_bytes", (double)x.list[k].whole);
        cJSON_AddNumberToObject(r, "part_bytes", (double)x.list[k].part);
        cJSON_AddItemToArray(list, r);
    }
    return ls_json_line(job->cx.arena, list);
}
