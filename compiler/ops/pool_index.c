/* compiler/ops/pool_index.c -- MaxPool's result Indices, and MaxUnpool, which takes it. */
#include "compiler/ops/pool_index.h"

#include "compiler/ops/index.h"
#include "compiler/ops/window.h"

static LsValueId with(LsOnnxNode *n, LsOpCode op, LsValueId a, int64_t b)
{
    return ls_append2(n->cx, n->g, op, a, ls_index_const(n, b), NULL);
}

static LsValueId sum(LsOnnxNode *n, LsValueId a, LsValueId b)
{
    return ls_append2(n->cx, n->g, LS_OP_ADD, a, b, NULL);
}

/* ---- Indices: the first element of each window, plus the element's place in the window ---- */
LsValueId ls_pool_index(LsOnnxNode *n, LsValueId y, const LsWindowAttr *w)
{
    LsGraph *g = n->g;
    LsValueId number = ls_out(g, g->value[y.i].def, 1);     /* of a position of the window */
    const LsShape x = *ls_in_shape(g, g->value[y.i].def, 0), s = *ls_shape(g, y);
    bool first_fastest = ls_onnx_int(n, "storage_order", 0) != 0;
    int64_t plane = ls_index_span(&x, 2, x.rank), step = 1;
    if (!ls_index_affords(n, s.dim[0] + s.dim[1]))
        return (LsValueId){0};
    LsValueId at = sum(n, ls_index_count(n, s.dim[0], x.dim[1] * plane, 0, s.rank),
                       ls_index_count(n, s.dim[1], plane, 1, s.rank));
    LsValueId rest = ls_append1(n->cx, g, LS_OP_CAST, number, &(LsAttr){.cast = LS_I64});
    LsValueId place[LS_MAX_SPATIAL];                        /* in the window, along each axis */
    for (int d = w->n - 1; d >= 0; d--) {
        place[d] = with(n, LS_OP_REMAINDER, rest, w->kernel[d]);
        rest = with(n, LS_OP_DIV_INT, rest, w->kernel[d]);
    }
    for (int k = 0; k < w->n; k++) {
        int d = first_fastest ? k : w->n - 1 - k;
        if (!ls_index_affords(n, s.dim[2 + d]))
            return (LsValueId){0};
        LsValueId start =
            with(n, LS_OP_SUB, ls_index_count(n, s.dim[2 + d], w->stride[d] * step, 2 + d, s.rank),
                 w->pad_lo[d] * step);
        at = sum(n, sum(n, at, start), with(n, LS_OP_MUL, place[d], w->dilation[d] * step));
        step *= x.dim[2 + d];
    }
    return at;
}

/* ---- MaxUnpool ---- */
/* The shape that the pooling's operand had at least; the indices count its elements. */
static bool unpooled_shape(LsOnnxNode *n, LsShape *s)
{
    LsWindowAttr w;
    const LsShape *x = ls_shape(n->g, n->in[0]);
    if (!ls_window_read(n, x->rank - 2, NULL, &w))
        return false;
    *s = *x;
    for (int d = 0; d < w.n; d++) {
        s->dim[2 + d] = (x->dim[2 + d] - 1) * w.stride[d] + w.kernel[d] - w.pad_lo[d] - w.pad_hi[d];
        if (s->dim[2 + d] < 1)
            return ls_onnx_error(n, LS_E_SHAPE, NULL, "axis %d would become %" PRId64 " long",
                                 2 + d, s->dim[2 + d]);
    }
    return true;
}

/* output_shape: zeros behind what is unpooled. */
static bool read_padding(LsOnnxNode *n, const LsShape *s, LsPadAttr *pad)
{
    int64_t size[LS_MAX_RANK];
    int have = ls_onnx_const_ints(n, 2, LS_MAX_RANK, size);
    if (have < 0)
        return have == -1;
    if (have != s->rank)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "output_shape has %d entries for %d axes", have,
                             s->rank);
    for (int k = 0; k < s->rank; k++) {
        pad->hi[k] = size[k] - s->dim[k];
        if (size[k] < s->dim[k] || (k < 2 && pad->hi[k] != 0))
            return ls_onnx_error(n, LS_E_SHAPE, NULL,
                                 "output_shape says %" PRId64 " for axis %d, of length %" PRId64,
                                 size[k], k, s->dim[k]);
    }
    return true;
}

/* The indices of a plane's elements, from its first on. An index into another plane, which no
 * pooling makes, is outside. */
static LsValueId indices_in_planes(LsOnnxNode *n, const LsShape *flat, int64_t plane)
{
    LsGraph *g = n->g;
    LsValueId index = ls_index_ints(n, 1);
    if (!ls_is(index) || !ls_index_affords(n, flat->dim[0]))
        return (LsValueId){0};
    index = ls_reshape(n->cx, g, index, flat);
    index =
        ls_append2(n->cx, g, LS_OP_SUB, index, ls_index_count(n, flat->dim[0], plane, 0, 2), NULL);
    if (!ls_is(index) || !ls_index_inside(n, index, 0, plane))
        return (LsValueId){0};
    LsValueId below = ls_append2(n->cx, g, LS_OP_LESS, index, ls_index_const(n, 0), NULL);
    return ls_append3(n->cx, g, LS_OP_WHERE, below, ls_index_const(n, LS_INDEX_OUTSIDE), index,
                      NULL);
}

static bool max_unpool_build(LsOnnxNode *n, LsValueId out[])
{
    LsShape s;
    LsAttr pad = {0};
    if (!ls_onnx_takes(n, 2, 3) || !ls_onnx_takes_real(n, 0) || !unpooled_shape(n, &s)
        || !read_padding(n, &s, &pad.pad))
        return false;
    LsGraph *g = n->g;
    const LsShape x = *ls_shape(g, n->in[0]);
    if (!ls_shape_same(&x, ls_shape(g, n->in[1])))
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "X is %s, the indices are %s",
                             ls_dims(g, n->in[0]), ls_dims(g, n->in[1]));
    int64_t planes = x.dim[0] * x.dim[1], plane = ls_index_span(&s, 2, s.rank);
    const LsShape flat = {2, {planes, ls_count(&x) / planes}};
    LsValueId index = indices_in_planes(n, &flat, plane), v = ls_reshape(n->cx, g, n->in[0], &flat);
    LsAttr at = {.gather = {.axis = 1, .x = {2, {planes, plane}}, .how = LS_SCATTER_SET}};
    v = ls_is(index) ? ls_append2(n->cx, g, LS_OP_SCATTER_EACH, v, index, &at) : index;
    v = ls_is(v) ? ls_reshape(n->cx, g, v, &s) : v;
    out[0] = ls_is(v) && ls_is(ls_onnx_in(n, 2)) ? ls_append1(n->cx, g, LS_OP_PAD, v, &pad) : v;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_max_unpool = {"MaxUnpool", 9, max_unpool_build};
