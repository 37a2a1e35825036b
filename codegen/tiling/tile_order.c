/* codegen/tiling/tile_order.c -- see the header.
 *
 * A node's *level* is the number of times that all tiles must have run before it: whoever reads
 * what the last tile has completed is one level above; with tiles of tokens also whoever reads what
 * a later tile has made, as attention of samples that end there. Levels run one after the other; in
 * a level nodes without a tile come first, as no tile of the level makes an operand of theirs.
 *
 * Sums of products over the rows of all tiles are as large as weights, and lie in memory from the
 * first tile to the last one. So that those of a whole network do not lie there together, the
 * backward part then runs in *stretches*: all tiles of one stretch before those of the next one.
 * Stretches end where little is passed on: in a transformer between its blocks. */
#include "codegen/tiling/tile_order.h"

#include "compiler/ir/rewrite.h"

#include <stdlib.h>

typedef struct Place {
    uint32_t level, stretch;
    int64_t tile;               /* -1: none */
    uint32_t node;
} Place;

static int by_place(const void *a, const void *b)
{
    const Place *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    if ((x->tile < 0) != (y->tile < 0))
        return x->tile < 0 ? -1 : 1;
    if (x->tile >= 0 && x->stretch != y->stretch)
        return x->stretch < y->stretch ? -1 : 1;
    if (x->tile != y->tile)
        return x->tile < y->tile ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static int64_t tile_of(const LsNode *n) { return n->tile != NULL ? n->tile->number : -1; }

/* A node that reads rows of the tiles behind its own runs after these: it counts as one of the
 * last. */
static int64_t last_tile(const LsGraph *g, const Place *at, uint32_t i)
{
    int64_t tile = at[i].tile;
    for (int k = 0; k < g->node[i].nin && tile >= 0; k++) {
        const uint32_t def = g->value[ls_in(g, (LsNodeId){i}, k).i].def.i;
        if (def != 0 && at[def].level == at[i].level && at[def].tile > tile)
            tile = at[def].tile;
    }
    return tile;
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    (void)r;
    (void)n;
    return false;
}

/* Updates stay behind all readers of what they write: in their order, at the end. */
static bool is_update(const LsNode *n) { return n->phase == LS_UPDATE; }

/* ---- stretches ---- */

static bool is_sum(const LsNode *n) { return n->tile != NULL && n->op == LS_OP_MATMUL_PART; }

static bool is_product(const LsNode *n)
{
    return n->tile != NULL && n->phase == LS_BACKWARD
           && (n->op == LS_OP_MATMUL || n->op == LS_OP_MATMUL_PART);
}

/* By node: bytes of what tiles of the backward part have made before the node, and nodes from it on
 * read. */
static int64_t *bytes_passed(LsCtx *cx, const LsGraph *g, int real_bytes)
{
    int64_t *passed = ls_arena_alloc(cx->arena, g->nnode + 1u, sizeof *passed);
    uint32_t *last = ls_arena_alloc(cx->arena, g->nvalue, sizeof *last);
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin; k++)
            last[ls_in(g, (LsNodeId){i}, k).i] = i;
    for (uint32_t v = 1; v < g->nvalue; v++) {
        const uint32_t def = g->value[v].def.i;
        const LsNode *n = &g->node[def];
        if (def == 0 || last[v] <= def || n->phase != LS_BACKWARD || n->tile == NULL || is_sum(n))
            continue;
        const int64_t bytes = ls_value_bytes(g, (LsValueId){v}, real_bytes);
        passed[def + 1] += bytes;
        passed[last[v] + 1] -= bytes;
    }
    for (uint32_t i = 1; i <= g->nnode; i++)
        passed[i] += passed[i - 1];
    return passed;
}

/* Sets the stretches of the backward part: each has a product, but for the last one, and ends where
 * about as little as anywhere between products is passed on. */
static void set_stretches(LsCtx *cx, const LsGraph *g, int real_bytes, Place *at)
{
    const int64_t *passed = bytes_passed(cx, g, real_bytes);
    int64_t least = INT64_MAX;
    uint32_t first = 0, end = 0, stretch = 0;
    bool any = false;
    for (uint32_t i = 1; i < g->nnode; i++)
        if (is_product(&g->node[i])) {
            first = first > 0 ? first : i;
            end = i;
        }
    for (uint32_t i = first; i < end; i++)
        least = passed[i + 1] > 0 && passed[i + 1] < least ? passed[i + 1] : least;
    for (uint32_t i = 1; i < g->nnode; i++) {
        if (any && passed[i] > 0 && passed[i] <= least + least / 4) {
            stretch++;
            any = false;
        }
        at[i].stretch = stretch;
        any |= is_product(&g->node[i]);
    }
}

/* Every node comes behind those that make its operands. */
static bool is_run_order(LsCtx *cx, const LsGraph *g, const Place *at)
{
    bool *ran = ls_arena_alloc(cx->arena, g->nnode, sizeof *ran);
    ran[0] = true;
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNodeId n = {at[i].node};
        for (int k = 0; k < g->node[n.i].nin; k++)
            if (!ran[g->value[ls_in(g, n, k).i].def.i])
                return false;
        ran[n.i] = true;
    }
    return true;
}

/* A level is a pass, and so is each of its stretches. */
static void number_passes(LsGraph *g, const Place *at)
{
    uint32_t pass = 0;
    for (uint32_t i = 1; i < g->nnode; i++) {
        pass += i > 1 && (at[i].level != at[i - 1].level
                          || (at[i - 1].tile >= 0 && at[i].stretch != at[i - 1].stretch));
        g->node[at[i].node].pass = pass;
    }
}

void ls_tile_order(LsCtx *cx, LsGraph *g, int real_bytes, bool apart)
{
    Place *at = ls_arena_alloc(cx->arena, g->nnode, sizeof *at);
    LsNodeId *order = ls_arena_alloc(cx->arena, g->nnode, sizeof *order);
    uint32_t n = 0, last = 0;
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNode *node = &g->node[i];
        at[i] = (Place){.tile = tile_of(node), .node = i};
        for (int k = 0; k < node->nin; k++) {
            const uint32_t def = g->value[ls_in(g, (LsNodeId){i}, k).i].def.i;
            const bool above = def != 0 && at[def].tile >= 0
                               && (at[i].tile < 0 || (apart && at[def].tile > at[i].tile));
            const uint32_t level = at[def].level + above;
            at[i].level = level > at[i].level ? level : at[i].level;
        }
        at[i].tile = last_tile(g, at, i);
        last = at[i].level > last ? at[i].level : last;
    }
    bool sums = false;
    for (uint32_t i = 1; i < g->nnode; i++)
        sums |= is_sum(&g->node[i]);
    if (sums)
        set_stretches(cx, g, real_bytes, at);
    for (uint32_t i = 1; i < g->nnode; i++)
        if (is_update(&g->node[i]))
            at[i].level = last + 1;
    qsort(at + 1, g->nnode - 1, sizeof *at, by_place);
    if (!is_run_order(cx, g, at))
        return;                 /* nodes stay as they are: a run order, too */
    number_passes(g, at);
    for (uint32_t i = 1; i < g->nnode; i++)
        if (g->node[at[i].node].op != LS_OP_NOP)
            order[n++].i = at[i].node;
    ls_rewrite_order(cx, g, visit, NULL, order, n);
}
