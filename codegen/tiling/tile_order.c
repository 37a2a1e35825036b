/* codegen/tiling/tile_order.c -- see the header.
 *
 * A node's *level* is the number of times that all tiles must have run before it: whoever reads
 * what the last tile has completed is one level above. Levels run one after the other; in a level
 * nodes without a tile come first, as no tile of the level makes an operand of theirs. */
#include "codegen/tiling/tile_order.h"

#include "compiler/ir/rewrite.h"

#include <stdlib.h>

typedef struct Place { uint32_t level; int64_t tile; uint32_t node; } Place;    /* tile -1: none */

static int by_place(const void *a, const void *b)
{
    const Place *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    if (x->tile != y->tile)
        return x->tile < y->tile ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static int64_t tile_of(const LsNode *n) { return n->tile.of > 0 ? n->tile.number : -1; }

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

void ls_tile_order(LsCtx *cx, LsGraph *g)
{
    Place *at = ls_arena_alloc(cx->arena, g->nnode, sizeof *at);
    LsNodeId *order = ls_arena_alloc(cx->arena, g->nnode, sizeof *order);
    uint32_t n = 0, last = 0;
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNode *node = &g->node[i];
        at[i] = (Place){.tile = tile_of(node), .node = i};
        for (int k = 0; k < node->nin; k++) {
            const uint32_t def = g->value[ls_in(g, (LsNodeId){i}, k).i].def.i;
            const bool above = def != 0 && at[def].tile >= 0 && at[i].tile < 0;
            const uint32_t level = at[def].level + above;
            at[i].level = level > at[i].level ? level : at[i].level;
        }
        at[i].tile = last_tile(g, at, i);
        last = at[i].level > last ? at[i].level : last;
    }
    for (uint32_t i = 1; i < g->nnode; i++) {
        if (is_update(&g->node[i]))
            at[i].level = last + 1;
        g->node[i].tile.pass = at[i].level;
    }
    qsort(at + 1, g->nnode - 1, sizeof *at, by_place);
    for (uint32_t i = 1; i < g->nnode; i++)
        if (g->node[at[i].node].op != LS_OP_NOP)
            order[n++].i = at[i].node;
    ls_rewrite_order(cx, g, visit, NULL, order, n);
}
