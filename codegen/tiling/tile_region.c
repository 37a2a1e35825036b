/* codegen/tiling/tile_region.c -- see the header. */
#include "codegen/tiling/tile_region.h"

#include "codegen/kernels/conv.h"
#include "codegen/kernels/reduce.h"
#include "codegen/tiling/tile_loss.h"
#include "codegen/tiling/tile_picture.h"
#include "codegen/tiling/tile_tokens.h"
#include "compiler/passes/soft_scores.h"

#include <string.h>

static bool has_samples(const LsTileRegion *r, LsValueId v)
{
    const LsShape *s = ls_shape(r->g, v);
    if (r->axis > 0)
        return ls_is_picture(r->g, v);
    return ls_is(v) && s->rank > 1 && s->dim[0] == r->samples;
}

static bool has_rows(const LsTileRegion *r, LsValueId v)
{
    return r->axis > 0 ? ls_is_picture(r->g, v) : ls_rows_are_in(r, v);
}

static bool reads_samples(const LsTileRegion *r, LsNodeId n, int k)
{
    const LsNode *node = &r->g->node[n.i];
    const LsShape *s = ls_in_shape(r->g, n, k);
    if (r->axis > 0)
        return ls_picture_reads(r, n, k);
    switch (node->op) {
    case LS_OP_FUSED:
        return s->rank == node->attr.fused.body->space.rank
               && s->dim[0] == node->attr.fused.body->space.dim[0];
    case LS_OP_CONV: case LS_OP_CONV_DX: case LS_OP_RESIZE: case LS_OP_RESIZE_GRAD:
        return k == 0;
    default: return ls_tile_row_reads(r, n, k);
    }
}

static bool fused_has_samples(const LsTileRegion *r, LsNodeId n)
{
    const LsNode *node = &r->g->node[n.i];
    const LsFused *f = node->attr.fused.body;
    if (f->space.dim[0] % r->samples != 0 || f->space.rank < 2)
        return false;
    for (int s = 0; s < f->nstmt; s++)
        if ((ls_tile_each(r, &f->space) > 1 || r->samples != r->g->batch)
            && ls_stmt_counted(&f->stmt[s]).each > 0)
            return false;
    for (int k = 0; k < node->nout; k++)
        if (ls_tile_makes(r, n, k)
            && (!has_rows(r, ls_out(r->g, n, k))
                || (f->out[k].length > 0 && f->split == 0)))
            return false;
    return true;
}

/* All tiles can go on with the sums of those before. */
static bool sums_go_on(const LsTileRegion *r, LsNodeId n)
{
    int64_t pieces, points, of;
    for (int t = 0; t < r->tiles; t++) {
        const LsTilePlace at = {.first = ls_tile_makes_span(r, n, t, &of).first, .axis = r->axis};
        if (!ls_reduce_may_go_on(r->g, n, r->target, at, &pieces, &points))
            return false;
    }
    return true;
}

static bool fused_fits(const LsTileRegion *r, LsNodeId n)
{
    const LsNode *node = &r->g->node[n.i];
    const LsFused *f = node->attr.fused.body;
    if (f->first > 0 || f->njoined > 0 || f->ninset > 0 || node->nin > LS_TILE_OPERANDS
        || node->nout > LS_MAX_OUT)
        return false;
    for (int s = 0; s < f->nstmt; s++)
        if (f->stmt[s].attr.scalar.parts > 1
            && strstr(ls_op[f->stmt[s].op]->expr, "%i") != NULL)
            return false;
    if (r->axis > 0 ? !ls_picture_fits(r, n) : !fused_has_samples(r, n))
        return false;
    for (int k = 0; k < node->nout; k++)
        if (!ls_tile_makes(r, n, k))
            return sums_go_on(r, n);
    return true;
}

static bool slice_fits(const LsTileRegion *r, LsNodeId n)
{
    const LsSliceAttr *at = &r->g->node[n.i].attr.slice;
    return at->start[0] == 0 && at->step[0] == 1 && at->stop[0] == ls_in_shape(r->g, n, 0)->dim[0];
}

/* The node can run by tiles. */
static bool fits(const LsTileRegion *r, LsNodeId n)
{
    const LsGraph *g = r->g;
    const LsNode *node = &g->node[n.i];
    int64_t parts, points;
    /* Programs find the classes of a target of probabilities by the whole node. */
    if (node->computed != NULL || node->phase == LS_UPDATE || ls_makes_soft_scores(g, n))
        return false;
    if (node->op == LS_OP_FUSED)
        return fused_fits(r, n);
    if (r->axis > 0)
        return ls_picture_fits(r, n);
    switch (node->op) {
    case LS_OP_CONV: break;
    case LS_OP_CONV_DX:
        if (node->nin > 3)
            return false;
        break;
    case LS_OP_CONV_DW:
        return has_samples(r, ls_in(g, n, 0)) && has_samples(r, ls_in(g, n, 1))
               && ls_conv_may_go_on(g, n, r->target, &parts, &points);
    case LS_OP_MAX_POOL: case LS_OP_MAX_POOL_GRAD: case LS_OP_AVERAGE_POOL:
    case LS_OP_AVERAGE_POOL_GRAD: case LS_OP_CONVERT: case LS_OP_RESIZE: case LS_OP_RESIZE_GRAD:
        break;
    case LS_OP_CONCAT:
        if (node->attr.axis.axis == 0)
            return false;
        break;
    case LS_OP_SLICE:
        if (!slice_fits(r, n))
            return false;
        break;
    case LS_OP_PAD:
        if (node->attr.pad.lo[0] != 0 || node->attr.pad.hi[0] != 0)
            return false;
        break;
    default: return ls_tile_rows_fit(r, n);
    }
    /* Kernels of pictures take their place among the samples from LsNode.tile. */
    const bool several = node->op == LS_OP_CONCAT || node->op == LS_OP_SLICE;
    for (int k = 0; k < node->nin; k++)
        if (ls_is(ls_in(g, n, k)) && reads_samples(r, n, k)
            && !(several ? has_rows : has_samples)(r, ls_in(g, n, k)))
            return false;
    for (int k = 0; k < node->nout; k++)
        if (!(several ? has_rows : has_samples)(r, ls_out(g, n, k)))
            return false;
    return true;
}

bool ls_tile_reads(const LsTileRegion *r, LsNodeId n, int k)
{
    return ls_is(ls_in(r->g, n, k)) && reads_samples(r, n, k);
}

bool ls_tile_makes(const LsTileRegion *r, LsNodeId n, int k)
{
    const LsNode *node = &r->g->node[n.i];
    if (node->op == LS_OP_FUSED)
        return !node->attr.fused.body->out[k].reduce
               || (r->axis == 0 && !(node->attr.fused.body->axes & 1));
    if (ls_tile_is_of_loss(node))
        return ls_tile_loss_makes(node, k);
    return node->op != LS_OP_CONV_DW && !ls_tile_sums_rows(r->g, n);
}

/* Marks the values that have rows of samples: inputs, and what is made of such values. */
static void find_rows(LsTileRegion *r)
{
    const LsGraph *g = r->g;
    for (uint32_t i = 0; i < g->ninput; i++)
        r->rows[g->input[i].i] = ls_shape(g, g->input[i])->rank > 0
                                 && ls_shape(g, g->input[i])->dim[0] == r->samples;
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNode *node = &g->node[i];
        bool any = false;
        for (int k = 0; k < node->nin; k++)
            any |= r->rows[ls_in(g, (LsNodeId){i}, k).i];
        for (int k = 0; k < node->nout; k++)
            r->rows[node->out + (uint32_t)k] = any && node->phase != LS_UPDATE
                                               && ls_tile_makes(r, (LsNodeId){i}, k)
                                               && ls_tile_keeps_rows(g, (LsNodeId){i});
        if (node->op == LS_OP_RESHAPE) {
            const LsValueId x = ls_in(g, (LsNodeId){i}, 0);
            r->even[node->out] = r->even[x.i] || !ls_tile_has_tokens(r, ls_shape(g, x));
        }
    }
}

/* Values that must be there as a whole. */
static void want_whole(LsTileRegion *r, const bool *may)
{
    const LsGraph *g = r->g;
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin; k++)
            if (!may[i] || !reads_samples(r, (LsNodeId){i}, k))
                r->whole[ls_in(g, (LsNodeId){i}, k).i] = true;
    for (uint32_t i = 0; i < g->noutput; i++)
        r->whole[g->output[i].i] = true;
    for (uint32_t i = 0; i < g->ngrad; i++)
        r->whole[g->grad[i].grad.i] = true;
    r->whole[g->objective.loss.i] = r->whole[g->objective.weight.i] = true;
}

/* The value is so large that it shall never be there as a whole, and need not be. */
static bool is_tiled(const LsTileRegion *r, const bool *may, uint32_t v, int64_t least)
{
    const LsGraph *g = r->g;
    const LsNodeId def = g->value[v].def;
    return def.i != 0 && may[def.i] && !r->whole[v] && has_rows(r, (LsValueId){v})
           && ls_value_bytes(g, (LsValueId){v}, r->target->real_bytes) >= least
           && ls_tile_makes(r, def, (int)(v - g->node[def.i].out));
}

LsSpan ls_tile_span(const LsTileRegion *r, LsValueId v, int t)
{
    const LsShape *s = ls_shape(r->g, v);
    return r->axis > 0 ? ls_picture_span(r, s->dim[r->axis], t)
                       : ls_tile_rows(r, s, r->even[v.i], t);
}

LsSpan ls_tile_reads_span(const LsTileRegion *r, LsNodeId n, int k, int t)
{
    int64_t of, rows = ls_in_shape(r->g, n, k)->dim[0];
    if (r->axis > 0)
        return ls_picture_read_span(r, n, k, t);
    const LsSpan own = ls_tile_makes_span(r, n, t, &of);
    return rows > of ? (LsSpan){own.first * (rows / of), own.end * (rows / of)}
                     : (LsSpan){own.first / (of / rows), own.end / (of / rows)};
}

LsSpan ls_tile_makes_span(const LsTileRegion *r, LsNodeId n, int t, int64_t *of)
{
    const LsNode *node = &r->g->node[n.i];
    if (r->axis > 0)
        return ls_picture_made_span(r, n, t, of);
    const bool sums = node->op == LS_OP_CONV_DW || ls_tile_sums_rows(r->g, n);
    const LsShape *s = node->op == LS_OP_FUSED ? &node->attr.fused.body->space
                       : sums                  ? ls_in_shape(r->g, n, 0)
                                               : ls_shape(r->g, ls_out(r->g, n, 0));
    *of = s->dim[0];
    return ls_tile_rows(r, s, node->op == LS_OP_RESHAPE && r->even[ls_out(r->g, n, 0).i], t);
}

/* The node is a view that has tokens in its rows, or its operand has, but not both. */
static bool joins_tokens(const LsTileRegion *r, LsNodeId n)
{
    return r->g->node[n.i].op == LS_OP_RESHAPE
           && ls_tile_has_tokens(r, ls_in_shape(r->g, n, 0))
                  != ls_tile_has_tokens(r, ls_shape(r->g, ls_out(r->g, n, 0)));
}

/* Such a view is of tiles only if its result is in tiles, too: tiles of both are copies of each
 * other, and a view of the whole value is none. */
static void drop_joins(LsTileRegion *r, bool *may, int64_t least)
{
    const LsGraph *g = r->g;
    bool some = r->tokens > 1;
    while (some) {
        some = false;
        for (uint32_t i = 1; i < g->nnode; i++)
            if (may[i] && joins_tokens(r, (LsNodeId){i})
                && (!is_tiled(r, may, ls_in(g, (LsNodeId){i}, 0).i, least)
                    || !is_tiled(r, may, g->node[i].out, least))) {
                may[i] = false;
                some = true;
            }
        memset(r->whole, 0, g->nvalue * sizeof *r->whole);
        want_whole(r, may);
    }
}

static void choose_ends(LsCtx *cx, LsTileRegion *r, int64_t tiles)
{
    int64_t *end = ls_arena_alloc(cx->arena, (size_t)tiles, sizeof *end);
    r->tiles = (int)tiles;
    for (int64_t t = 0; t < tiles; t++)
        end[t] = r->samples * (t + 1) / tiles;
    r->end = end;
}

/* Sets axis, samples, tiles, ends and rows of the region; false: there is nothing to cut. */
static bool choose(LsCtx *cx, LsTileRegion *r, const LsTiling *o, int64_t tokens)
{
    if (o->of == LS_OF_ROWS)
        return ls_picture_choose(cx, r, o);
    r->samples = r->g->batch;
    r->tokens = 1;
    if (o->of == LS_OF_TOKENS) {
        if (tokens == 0 || !ls_tokens_choose(cx, r, o, tokens))
            return false;
    } else if (r->samples < 2) {
        return false;
    } else {
        choose_ends(cx, r, o->tiles < r->samples ? o->tiles : r->samples);
    }
    find_rows(r);
    return true;
}

LsTileRegion ls_tile_region(LsCtx *cx, const LsGraph *g, const LsTarget *t, const LsTiling *o,
                            int64_t tokens)
{
    LsTileRegion r = {.g = g, .target = t};
    bool *may = ls_arena_alloc(cx->arena, g->nnode, sizeof *may);
    r.in = ls_arena_alloc(cx->arena, g->nnode, sizeof *r.in);
    r.whole = ls_arena_alloc(cx->arena, g->nvalue, sizeof *r.whole);
    r.rows = ls_arena_alloc(cx->arena, g->nvalue, sizeof *r.rows);
    r.even = ls_arena_alloc(cx->arena, g->nvalue, sizeof *r.even);
    if (o->tiles < 2 || !choose(cx, &r, o, tokens))
        return r;
    for (uint32_t i = 1; i < g->nnode; i++)
        may[i] = fits(&r, (LsNodeId){i});
    want_whole(&r, may);
    drop_joins(&r, may, o->least);
    for (uint32_t v = 1; v < g->nvalue; v++)
        if (is_tiled(&r, may, v, o->least))
            r.in[g->value[v].def.i] = true;
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin && may[i]; k++)
            r.in[i] |= is_tiled(&r, may, ls_in(g, (LsNodeId){i}, k).i, o->least);
    memset(r.whole, 0, g->nvalue * sizeof *r.whole);
    want_whole(&r, r.in);
    for (uint32_t i = 1; i < g->nnode; i++)
        r.nodes += r.in[i];
    return r;
}
