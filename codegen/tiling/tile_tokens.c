/* codegen/tiling/tile_tokens.c -- see the header. */
#include "codegen/tiling/tile_tokens.h"

#include "codegen/kernels/matmul.h"
#include "codegen/kernels/reduce.h"
#include "codegen/tiling/tile_matrices.h"
#include "compiler/ir/rewrite.h"
#include "compiler/passes/fuse.h"
#include "compiler/passes/soft_scores.h"

typedef struct Flat {
    int64_t samples, tokens;    /* B, T */
    bool *result;               /* by value: it leaves the graph, under its name */
    LsValueId *flat;            /* by value: of the new graph, its first two axes as one */
} Flat;

static bool has_tokens(const Flat *s, const LsShape *x)
{
    return x->rank > 2 && x->dim[0] == s->samples && x->dim[1] == s->tokens;
}

/* The value's first two axes are those of its elements in memory, so that they can be one. */
static bool is_row_major(const LsGraph *g, LsValueId v)
{
    return g->value[v.i].layout == LS_ROW || ls_layout_free(ls_shape(g, v));
}

static bool is_of_tokens(const LsGraph *g, const Flat *s, LsValueId v)
{
    return has_tokens(s, ls_shape(g, v)) && is_row_major(g, v);
}

static bool is_flat(const Flat *s, const LsShape *x)
{
    return x->rank > 1 && x->dim[0] == s->samples * s->tokens;
}

/* The first two axes as one. */
static LsShape merged(const LsShape *x)
{
    LsShape y = {.rank = x->rank - 1, .dim = {x->dim[0] * x->dim[1]}};
    for (int k = 1; k < y.rank; k++)
        y.dim[k] = x->dim[k + 1];
    return y;
}

/* ---- values ---- */

static LsValueId reshaped(LsRewrite *r, LsValueId x, const LsShape *shape)
{
    const LsNodeId n =
        ls_append_bare(r->to, LS_OP_RESHAPE, 1, &x, 1, &(LsAttr){.shape = {*shape}});
    ls_set_out(r->to, n, 0, ls_type(r->to, x), shape);
    return ls_out(r->to, n, 0);
}

/* The image of value v; of one whose rows are made, a view of them. */
static LsValueId image_of(LsRewrite *r, const Flat *s, LsValueId v)
{
    if (ls_is(v) && !ls_is(r->map[v.i])) {
        r->map[v.i] = reshaped(r, s->flat[v.i], ls_shape(r->from, v));
        if (s->result[v.i])
            r->to->value[r->map[v.i].i].name = r->from->value[v.i].name;
    }
    return r->map[v.i];
}

/* Value v with its first two axes as one. */
static LsValueId flat_of(LsRewrite *r, const Flat *s, LsValueId v)
{
    const LsValue *old = &r->from->value[v.i];
    const LsShape shape = merged(&old->shape);
    if (!ls_is(s->flat[v.i]))
        s->flat[v.i] = old->kind == LS_V_CONST
                           ? ls_const_add(r->cx, r->to, old->type, &shape, old->data)
                           : reshaped(r, image_of(r, s, v), &shape);
    return s->flat[v.i];
}

/* These rows are those of value v. */
static void set_flat(LsRewrite *r, const Flat *s, LsValueId v, LsValueId rows)
{
    s->flat[v.i] = rows;
    if (s->result[v.i])
        image_of(r, s, v);
}

/* Result k of node `to` has the rows of value v. */
static void set_rows(LsRewrite *r, const Flat *s, LsNodeId to, int k, LsValueId v)
{
    const LsValue *old = &r->from->value[v.i];
    const LsShape shape = merged(&old->shape);
    LsValue *own = &r->to->value[ls_out(r->to, to, k).i];
    if (!s->result[v.i])
        own->name = old->name;
    own->stopped = old->stopped;
    ls_set_out(r->to, to, k, old->type, &shape);
    set_flat(r, s, v, ls_out(r->to, to, k));
}

/* ---- loops ---- */

typedef enum { NO, SAME, FLAT } Way;

/* How a loop over rows reads an operand of this shape: as it is, or with its first two axes as one.
 * NO: it differs from sample to sample, or from token to token, but not from row to row. */
static Way way_of(const Flat *s, const LsShape *x, int rank)
{
    const int behind = rank - x->rank;
    const int64_t sample = behind == 0 ? x->dim[0] : 1,
                  token = behind <= 1 && x->rank > 0 ? x->dim[1 - behind] : 1;
    if (behind == 0 && has_tokens(s, x))
        return FLAT;
    if (sample == 1 && token == 1)
        return behind == 0 ? FLAT : SAME;
    return behind == 1 && s->samples == 1 && token == s->tokens ? SAME : NO;
}

/* Reduced axes of a loop over rows: all of the first two, or none. */
static bool may_merge_axes(const Flat *s, uint32_t axes)
{
    const uint32_t first = axes & 3;
    return first == 0 || first == 3 || (first == 2 && s->samples == 1);
}

static bool may_merge_loop(const LsGraph *g, const Flat *s, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    const LsFused *f = node->attr.fused.body;
    if (!has_tokens(s, &f->space) || f->layout != LS_ROW || f->first > 0 || f->njoined > 0
        || f->ninset > 0 || !may_merge_axes(s, f->axes))
        return false;
    for (int i = 0; i < f->nstmt; i++)
        if (ls_stmt_counted(&f->stmt[i]).each > 0)
            return false;
    for (int k = 0; k < node->nin; k++)
        if (ls_is(ls_in(g, n, k))
            && (way_of(s, ls_in_shape(g, n, k), f->space.rank) == NO
                || !is_row_major(g, ls_in(g, n, k))))
            return false;
    for (int k = 0; k < node->nout; k++)
        if (!is_row_major(g, ls_out(g, n, k)) || ls_shape(g, ls_out(g, n, k))->rank != f->space.rank
            || way_of(s, ls_shape(g, ls_out(g, n, k)), f->space.rank) != FLAT
            || (f->out[k].length > 0 && f->split < 2))
            return false;
    return true;
}

static void merge_loop(LsRewrite *r, const Flat *s, LsNodeId n)
{
    const LsNode *node = &r->from->node[n.i];
    LsFused *f = ls_arena_alloc(r->cx->arena, 1, sizeof *f);
    LsValueId *in = ls_arena_alloc(r->cx->arena, node->nin, sizeof *in);
    *f = *node->attr.fused.body;
    for (int k = 0; k < node->nin; k++) {
        const LsValueId v = ls_in(r->from, n, k);
        if (ls_is(v))
            in[k] = way_of(s, ls_shape(r->from, v), f->space.rank) == FLAT ? flat_of(r, s, v)
                                                                           : image_of(r, s, v);
    }
    f->space = merged(&f->space);
    f->axes = (f->axes >> 1 & ~1u) | ((f->axes & 3) != 0);
    f->split -= f->split > 0;
    const LsAttr at = {.fused = {.body = f}};
    const LsNodeId to = ls_append_bare(r->to, LS_OP_FUSED, node->nin, in, node->nout, &at);
    r->image = to;
    r->to->node[to.i].rounds = node->rounds;
    for (int k = 0; k < node->nout; k++)
        set_rows(r, s, to, k, ls_out(r->from, n, k));
}

/* ---- other nodes ---- */

/* Operand k has the rows of the result. */
static bool has_rows(LsOpCode op, int k)
{
    return op == LS_OP_LAYER_NORM ? k == 0 : op != LS_OP_LAYER_NORM_GRAD || k != 2;
}

static bool takes_all(const LsSliceAttr *at, const LsShape *x, int axis)
{
    return at->start[axis] == 0 && at->step[axis] == 1 && at->stop[axis] == x->dim[axis];
}

/* The node computes each row by itself; its attributes for rows. */
static bool row_attr(const LsGraph *g, LsNodeId n, LsAttr *at)
{
    const LsNode *node = &g->node[n.i];
    const LsShape *x = node->op == LS_OP_SLICE_GRAD ? &at->slice.x : ls_in_shape(g, n, 0);
    switch (node->op) {
    case LS_OP_LAYER_NORM: case LS_OP_LAYER_NORM_GRAD: return --at->norm.axis > 0;
    case LS_OP_SOFTMAX: case LS_OP_LOG_SOFTMAX: case LS_OP_SOFTMAX_GRAD:
    case LS_OP_LOG_SOFTMAX_GRAD: case LS_OP_CONCAT: return --at->axis.axis > 0;
    case LS_OP_CONVERT: return true;
    case LS_OP_TRANSPOSE:
        if (at->perm.perm[0] != 0 || at->perm.perm[1] != 1)
            return false;
        for (int k = 1; k < x->rank - 1; k++)
            at->perm.perm[k] = at->perm.perm[k + 1] - 1;
        return true;
    case LS_OP_PAD:
        if (at->pad.lo[0] != 0 || at->pad.hi[0] != 0 || at->pad.lo[1] != 0 || at->pad.hi[1] != 0)
            return false;
        for (int k = 1; k < x->rank - 1; k++) {
            at->pad.lo[k] = at->pad.lo[k + 1];
            at->pad.hi[k] = at->pad.hi[k + 1];
        }
        return true;
    case LS_OP_SLICE: case LS_OP_SLICE_GRAD:
        if (!takes_all(&at->slice, x, 0) || !takes_all(&at->slice, x, 1))
            return false;
        at->slice.stop[0] = x->dim[0] * x->dim[1];
        for (int k = 1; k < x->rank - 1; k++) {
            at->slice.start[k] = at->slice.start[k + 1];
            at->slice.step[k] = at->slice.step[k + 1];
            at->slice.stop[k] = at->slice.stop[k + 1];
        }
        if (node->op == LS_OP_SLICE_GRAD)
            at->slice.x = merged(x);
        return true;
    default: return false;
    }
}

static bool may_merge(const LsGraph *g, const Flat *s, LsNodeId n, LsAttr *at)
{
    const LsNode *node = &g->node[n.i];
    for (int k = 0; k < node->nin; k++)
        if (ls_is(ls_in(g, n, k)) && has_rows((LsOpCode)node->op, k)
            && !is_of_tokens(g, s, ls_in(g, n, k)))
            return false;
    for (int k = 0; k < node->nout; k++)
        if (!is_of_tokens(g, s, ls_out(g, n, k)))
            return false;
    *at = node->attr;
    return row_attr(g, n, at);
}

static void merge(LsRewrite *r, const Flat *s, LsNodeId n, const LsAttr *at)
{
    const LsNode *node = &r->from->node[n.i];
    LsValueId *in = ls_arena_alloc(r->cx->arena, node->nin, sizeof *in);
    for (int k = 0; k < node->nin; k++) {
        const LsValueId v = ls_in(r->from, n, k);
        if (ls_is(v))
            in[k] = has_rows((LsOpCode)node->op, k) ? flat_of(r, s, v) : image_of(r, s, v);
    }
    const LsNodeId to = ls_append_bare(r->to, (LsOpCode)node->op, node->nin, in, node->nout, at);
    r->image = to;
    r->to->node[to.i].rounds = node->rounds;
    for (int k = 0; k < node->nout; k++)
        set_rows(r, s, to, k, ls_out(r->from, n, k));
}

/* Rows of a table, by tokens [B, T]: as [B * T, 1], whose rows can be cut. */
static bool merge_gather(LsRewrite *r, const Flat *s, LsNodeId n)
{
    const LsNode *node = &r->from->node[n.i];
    const LsValueId v = ls_out(r->from, n, 0);
    const LsShape *table = ls_in_shape(r->from, n, 0), *x = ls_in_shape(r->from, n, 1);
    if (node->attr.gather.axis != 0 || table->rank != 2 || x->rank != 2
        || !has_tokens(s, ls_shape(r->from, v)))
        return false;
    const int64_t rows = s->samples * s->tokens;
    const LsValueId in[] = {image_of(r, s, ls_in(r->from, n, 0)),
                            reshaped(r, image_of(r, s, ls_in(r->from, n, 1)),
                                     &(LsShape){2, {rows, 1}})};
    const LsNodeId to = ls_append_bare(r->to, LS_OP_GATHER, 2, in, 1, &node->attr);
    r->image = to;
    ls_set_out(r->to, to, 0, ls_type(r->from, v), &(LsShape){3, {rows, 1, table->dim[1]}});
    set_flat(r, s, v, reshaped(r, ls_out(r->to, to, 0), &(LsShape){2, {rows, table->dim[1]}}));
    return true;
}

/* Views of rows are views of these. */
static bool merge_reshape(LsRewrite *r, const Flat *s, LsNodeId n)
{
    const LsValueId v = ls_out(r->from, n, 0), x = ls_in(r->from, n, 0);
    const LsShape *from = ls_shape(r->from, x), *to = ls_shape(r->from, v);
    const bool makes = has_tokens(s, to), reads = has_tokens(s, from);
    if (!is_row_major(r->from, x) || !is_row_major(r->from, v))
        return false;
    if ((makes && !reads && !is_flat(s, from)) || (!makes && (!reads || !is_flat(s, to)))
        || (!makes && s->result[v.i]))
        return false;
    LsValueId rows = reads ? flat_of(r, s, x) : image_of(r, s, x);
    const LsShape shape = makes ? merged(to) : *to;
    if (!ls_shape_same(ls_shape(r->to, rows), &shape))
        rows = reshaped(r, rows, &shape);
    r->image = r->to->value[rows.i].def;
    if (makes)
        set_flat(r, s, v, rows);
    else
        r->map[v.i] = rows;
    return true;
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    const Flat *s = r->user;
    const LsNode *node = &r->from->node[n.i];
    LsAttr at;
    if (node->phase != LS_UPDATE && node->computed == NULL) {
        if (node->op == LS_OP_FUSED && may_merge_loop(r->from, s, n)) {
            merge_loop(r, s, n);
            return true;
        }
        if ((node->op == LS_OP_RESHAPE && merge_reshape(r, s, n))
            || (node->op == LS_OP_GATHER && merge_gather(r, s, n)))
            return true;
        if (!ls_makes_soft_scores(r->from, n) && may_merge(r->from, s, n, &at)) {
            merge(r, s, n, &at);
            return true;
        }
    }
    for (int k = 0; k < node->nin; k++)
        image_of(r, s, ls_in(r->from, n, k));
    return false;
}

/* T of the largest value [B, T, C]. */
static int64_t tokens_of(const LsGraph *g, const LsTarget *t)
{
    int64_t tokens = 0, most = 0;
    for (uint32_t v = 1; v < g->nvalue; v++) {
        const LsShape *x = &g->value[v].shape;
        const bool some = g->value[v].def.i != 0 && x->rank == 3 && x->dim[0] == g->batch
                          && x->dim[1] > 1;
        const int64_t bytes = some ? ls_value_bytes(g, (LsValueId){v}, t->real_bytes) : 0;
        tokens = bytes > most ? x->dim[1] : tokens;
        most = bytes > most ? bytes : most;
    }
    return tokens;
}

int64_t ls_tokens_flatten(LsCtx *cx, LsGraph *g, const LsTarget *t)
{
    Flat s = {.samples = g->batch, .tokens = tokens_of(g, t)};
    if (s.tokens == 0)
        return 0;
    s.result = ls_arena_alloc(cx->arena, g->nvalue, sizeof *s.result);
    s.flat = ls_arena_alloc(cx->arena, g->nvalue, sizeof *s.flat);
    for (uint32_t i = 0; i < g->noutput; i++)
        s.result[g->output[i].i] = true;
    for (uint32_t i = 0; i < g->ngrad; i++)
        s.result[g->grad[i].grad.i] = true;
    s.result[g->objective.loss.i] = s.result[g->objective.weight.i] = true;
    ls_rewrite(cx, g, visit, &s);
    return s.samples * s.tokens;
}

/* ---- where tiles end ---- */

/* Sums over the rows can go on at row `at`; those that can go on nowhere do not count. */
static bool all_go_on(const LsTileRegion *r, int64_t rows, int64_t at)
{
    const LsGraph *g = r->g;
    int64_t pieces, points;
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNode *node = &g->node[i];
        const LsNodeId n = {i};
        if (node->phase == LS_UPDATE)
            continue;
        if (ls_tile_sums_rows(g, n) && ls_in_shape(g, n, 0)->dim[0] == rows
            && !ls_matmul_block_ends(r->target->real_bytes, ls_is_dot16(node), rows, at))
            return false;
        const LsFused *f = node->op == LS_OP_FUSED ? node->attr.fused.body : NULL;
        if (f != NULL && (f->axes & 1) != 0 && f->space.dim[0] == rows
            && ls_reduce_may_go_on(g, n, r->target, (LsTilePlace){.first = 0}, &pieces, &points)
            && !ls_reduce_may_go_on(g, n, r->target, (LsTilePlace){.first = at}, &pieces, &points))
            return false;
    }
    return true;
}

bool ls_tokens_choose(LsCtx *cx, LsTileRegion *r, const LsTiling *o, int64_t rows)
{
    const int64_t most = rows / LS_REDUCE_RUN + 1;
    int64_t *end = ls_arena_alloc(cx->arena, (size_t)most, sizeof *end), n = 0;
    for (int64_t at = LS_REDUCE_RUN; at < rows; at += LS_REDUCE_RUN)
        if (all_go_on(r, rows, at))
            end[n++] = at;
    end[n++] = rows;
    const int64_t tiles = o->tiles < n ? o->tiles : n;
    int64_t *own = ls_arena_alloc(cx->arena, (size_t)tiles, sizeof *own);
    for (int64_t t = 0; t < tiles; t++)
        own[t] = end[n * (t + 1) / tiles - 1];
    r->samples = r->g->batch > 1 ? r->g->batch : rows;
    r->tokens = rows / r->samples;
    r->tiles = (int)tiles;
    r->end = own;
    return tiles > 1;
}
