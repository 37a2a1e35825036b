/* codegen/tiling/tile_samples.c -- see the header. */
#include "codegen/tiling/tile_samples.h"

#include "codegen/kernels/conv.h"
#include "codegen/kernels/reduce.h"
#include "codegen/tiling/tile_order.h"
#include "codegen/tiling/tile_region.h"
#include "compiler/ir/rewrite.h"

#include <string.h>

typedef struct Tiler {
    LsTileRegion r;
    LsValueId *tile;            /* by (value, tile): of a result, or a slice of another value */
    LsValueId *base;            /* by value: the whole as far as it has been put together */
    LsValueId *state;           /* by value: of the sum over the tiles so far */
} Tiler;

static LsValueId *tile_of(const Tiler *s, LsValueId v, int t)
{
    return &s->tile[v.i * (uint32_t)s->r.tiles + (uint32_t)t];
}

static LsTilePlace place_of(const Tiler *s, int t)
{
    return (LsTilePlace){ls_tile_first(&s->r, t), s->r.samples};
}

static int64_t count_of(const Tiler *s, int t) { return s->r.end[t] - ls_tile_first(&s->r, t); }

/* Sets result k of node `to`: some samples of the value `of`. */
static void set_tile(LsRewrite *r, const Tiler *s, LsNodeId to, int k, LsValueId of, int t)
{
    const LsValue *old = &r->from->value[of.i];
    LsShape shape = old->shape;
    shape.dim[0] = count_of(s, t);
    const LsValueId v = ls_out(r->to, to, k);
    r->to->value[v.i].name = ls_arena_printf(r->cx->arena, "%s.%d", old->name, t);
    r->to->value[v.i].layout = old->layout;
    ls_set_out(r->to, to, k, old->type, &shape);
}

/* Tile t of a value that the graph makes as a whole. */
static LsValueId slice(LsRewrite *r, const Tiler *s, LsValueId v, int t)
{
    const LsShape *x = ls_shape(r->from, v);
    LsAttr at = {0};
    for (int k = 0; k < x->rank; k++) {
        at.slice.stop[k] = x->dim[k];
        at.slice.step[k] = 1;
    }
    at.slice.start[0] = ls_tile_first(&s->r, t);
    at.slice.stop[0] = s->r.end[t];
    const LsValueId in = ls_image(r, v);
    const LsNodeId n = ls_append_bare(r->to, LS_OP_SLICE, 1, &in, 1, &at);
    r->to->node[n.i].tile = place_of(s, t);
    set_tile(r, s, n, 0, v, t);
    return ls_out(r->to, n, 0);
}

static LsValueId operand(LsRewrite *r, const Tiler *s, LsNodeId n, int k, int t)
{
    const LsValueId v = ls_in(r->from, n, k);
    if (!ls_is(v) || !ls_tile_reads(&s->r, n, k))
        return ls_is(v) ? ls_image(r, v) : v;
    LsValueId *tile = tile_of(s, v, t);
    if (!ls_is(*tile))
        *tile = slice(r, s, v, t);
    return *tile;
}

/* The whole value `of` with one more tile. */
static void place(LsRewrite *r, Tiler *s, LsValueId of, int t)
{
    const LsValueId in[] = {*tile_of(s, of, t), s->base[of.i]};
    LsAttr at = {.slice = {.x = *ls_shape(r->from, of)}};
    at.slice.start[0] = ls_tile_first(&s->r, t);
    const LsNodeId n = ls_append_bare(r->to, LS_OP_PLACE, t > 0 ? 2 : 1, in, 1, &at);
    r->to->node[n.i].tile = place_of(s, t);
    ls_rewrite_result(r, n, 0, of);
    s->base[of.i] = ls_out(r->to, n, 0);
    if (t + 1 < s->r.tiles)
        r->to->value[s->base[of.i].i].name =
            ls_arena_printf(r->cx->arena, "%s..%d", r->from->value[of.i].name, t);
}

static void set_state(LsRewrite *r, Tiler *s, LsNodeId to, int k, LsValueId of, LsType type,
                      int64_t elements, int t)
{
    const LsValueId v = ls_out(r->to, to, k);
    r->to->value[v.i].name =
        ls_arena_printf(r->cx->arena, "%s+%d", r->from->value[of.i].name, t);
    ls_set_out(r->to, to, k, type, &(LsShape){1, {elements}});
    s->state[of.i] = v;
}

/* ---- nodes ---- */

static const LsFused *body_of_tile(LsRewrite *r, const Tiler *s, LsNodeId n, int t)
{
    const LsNode *node = &r->from->node[n.i];
    LsFused *f = ls_arena_alloc(r->cx->arena, 1, sizeof *f);
    *f = *node->attr.fused.body;
    f->space.dim[0] = count_of(s, t);
    f->states = ls_reduces(f, node->nout) ? node->nin : 0;
    return f;
}

static LsAttr attr_of_tile(LsRewrite *r, const Tiler *s, LsNodeId n, int t)
{
    const LsNode *node = &r->from->node[n.i];
    LsAttr at = node->attr;
    switch (node->op) {
    case LS_OP_FUSED: at.fused.body = body_of_tile(r, s, n, t); break;
    case LS_OP_SLICE: at.slice.stop[0] = count_of(s, t); break;
    default: break;
    }
    return at;
}

/* The result of a sum after the last tile. */
static void end_sum(LsRewrite *r, const Tiler *s, LsNodeId n, int k)
{
    const LsNode *node = &r->from->node[n.i];
    const LsValueId of = ls_out(r->from, n, k), in = s->state[of.i];
    LsAttr at = node->attr;
    int64_t pieces, points;
    if (node->op == LS_OP_FUSED) {
        ls_reduce_may_go_on(r->from, n, s->r.target, 0, &pieces, &points);
        at.fused = (LsFusedAttr){node->attr.fused.body, k, pieces, points};
    } else {
        ls_conv_may_go_on(r->from, n, s->r.target, &pieces, &points);
        at.window.parts = pieces;
    }
    const LsNodeId end = ls_append_bare(
        r->to, node->op == LS_OP_FUSED ? LS_OP_SUM_END : LS_OP_CONV_DW_END, 1, &in, 1, &at);
    ls_rewrite_result(r, end, 0, of);
}

static void add_tile(LsRewrite *r, Tiler *s, LsNodeId n, int t)
{
    const LsNode *node = &r->from->node[n.i];
    const bool weights = node->op == LS_OP_CONV_DW;
    LsValueId *in = ls_arena_alloc(r->cx->arena, (size_t)node->nin + node->nout, sizeof *in);
    int nin = 0;
    for (; nin < node->nin; nin++)
        in[nin] = operand(r, s, n, nin, t);
    for (int k = 0; k < node->nout && t > 0; k++)
        if (!ls_tile_makes(&s->r, n, k))
            in[nin++] = s->state[ls_out(r->from, n, k).i];
    const LsAttr at = attr_of_tile(r, s, n, t);
    const LsNodeId to = ls_append_bare(r->to, weights ? LS_OP_CONV_DW_PART : node->op, nin, in,
                                       node->nout, &at);
    r->to->node[to.i].tile = place_of(s, t);
    for (int k = 0; k < node->nout; k++) {
        const LsValueId of = ls_out(r->from, n, k);
        int64_t pieces, points;
        if (weights) {
            ls_conv_may_go_on(r->from, n, s->r.target, &pieces, &points);
            set_state(r, s, to, k, of, LS_REAL, pieces > 0 ? pieces * points : points, t);
        } else if (!ls_tile_makes(&s->r, n, k)) {
            ls_reduce_may_go_on(r->from, n, s->r.target, 0, &pieces, &points);
            set_state(r, s, to, k, of, LS_I64, pieces * points, t);
        } else {
            set_tile(r, s, to, k, of, t);
            *tile_of(s, of, t) = ls_out(r->to, to, k);
        }
    }
    for (int k = 0; k < node->nout; k++)
        if (ls_tile_makes(&s->r, n, k) && s->r.whole[ls_out(r->from, n, k).i])
            place(r, s, ls_out(r->from, n, k), t);
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    Tiler *s = r->user;
    if (!s->r.in[n.i])
        return false;
    for (int t = 0; t < s->r.tiles; t++)
        add_tile(r, s, n, t);
    for (int k = 0; k < r->from->node[n.i].nout; k++)
        if (!ls_tile_makes(&s->r, n, k))
            end_sum(r, s, n, k);
    return true;
}

uint32_t ls_tile_samples(LsCtx *cx, LsGraph *g, const LsTarget *t, const LsTiling *o)
{
    Tiler s = {.r = ls_tile_region(cx, g, t, o)};
    if (s.r.nodes == 0)
        return 0;
    const size_t tiles = (size_t)s.r.tiles;
    s.tile = ls_arena_alloc(cx->arena, g->nvalue * tiles, sizeof *s.tile);
    s.base = ls_arena_alloc(cx->arena, g->nvalue, sizeof *s.base);
    s.state = ls_arena_alloc(cx->arena, g->nvalue, sizeof *s.state);
    ls_rewrite(cx, g, visit, &s);
    ls_tile_order(cx, g);
    return s.r.nodes;
}
