/* compiler/ops/arg_max.c -- operators that compare elements with their index along an axis: ArgMax,
 * ArgMin, Hardmax, OneHot. They become pointwise rows and reductions of integers, which fuse and
 * fold, and pass on no gradient. */
#include "compiler/onnx_file/onnx_tensor.h"
#include "compiler/ops/index.h"
#include "compiler/ops/row.h"

static LsValueId count_up(const LsOnnxNode *n, int64_t length, int axis, int rank)
{
    return ls_index_count(n, length, 1, axis, rank);
}

static LsValueId cast(const LsOnnxNode *n, LsValueId v, LsType to)
{
    return ls_type(n->g, v) == to ? v
                                  : ls_append1(n->cx, n->g, LS_OP_CAST, v, &(LsAttr){.cast = to});
}

/* Whether an element of x is the extreme one along the axis; a NaN is, as nothing is larger or
 * less. */
static LsValueId is_extreme(LsOnnxNode *n, LsValueId x, int axis, bool least)
{
    const LsAttr at = {.reduce = {.axes = 1u << axis, .keep = true}};
    LsValueId best = ls_append1(n->cx, n->g, least ? LS_OP_REDUCE_MIN : LS_OP_REDUCE_MAX, x, &at);
    if (!ls_is(best))
        return best;
    LsValueId hit = ls_append2(n->cx, n->g, LS_OP_EQUAL, x, best, NULL);
    if (ls_type(n->g, x) != LS_REAL)
        return hit;
    LsValueId number = ls_append2(n->cx, n->g, LS_OP_EQUAL, x, x, NULL);
    return ls_append2(n->cx, n->g, LS_OP_OR, hit, ls_append1(n->cx, n->g, LS_OP_NOT, number, NULL),
                      NULL);
}

/* The first or last index of the extreme element, with the axis kept. */
static LsValueId arg_extreme(LsOnnxNode *n, LsValueId x, int axis, bool least, bool last)
{
    const LsShape s = *ls_shape(n->g, x);
    LsValueId hit = is_extreme(n, x, axis, least);
    if (!ls_is(hit))
        return hit;
    LsValueId at = ls_append3(n->cx, n->g, LS_OP_WHERE, hit, count_up(n, s.dim[axis], axis, s.rank),
                              ls_index_const(n, last ? -1 : s.dim[axis]), NULL);
    return ls_append1(n->cx, n->g, last ? LS_OP_REDUCE_MAX : LS_OP_REDUCE_MIN, at,
                      &(LsAttr){.reduce = {.axes = 1u << axis, .keep = true}});
}

static bool arg_build(LsOnnxNode *n, bool least, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1))
        return false;
    const LsShape s = *ls_shape(n->g, n->in[0]);
    int axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", 0), s.rank);
    if (axis < 0 || !ls_index_affords(n, s.dim[axis]))
        return false;
    bool last = ls_onnx_int(n, "select_last_index", 0) != 0;
    out[0] = arg_extreme(n, n->in[0], axis, least, last);
    if (!ls_is(out[0]) || ls_onnx_int(n, "keepdims", 1) != 0)
        return ls_is(out[0]);
    LsShape to = {0};
    for (int k = 0; k < s.rank; k++)
        if (k != axis)
            to.dim[to.rank++] = s.dim[k];
    out[0] = ls_reshape(n->cx, n->g, out[0], &to);
    return ls_is(out[0]);
}

static bool arg_max_build(LsOnnxNode *n, LsValueId out[]) { return arg_build(n, false, out); }
static bool arg_min_build(LsOnnxNode *n, LsValueId out[]) { return arg_build(n, true, out); }
const LsOnnxOp ls_onnx_arg_max = {"ArgMax", 1, arg_max_build};
const LsOnnxOp ls_onnx_arg_min = {"ArgMin", 1, arg_min_build};

/* ---- Hardmax: 1 at the first largest element; before opset 13 of the rows of a matrix split at
 * the axis ---- */
static bool hardmax_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1) || !ls_onnx_takes_real(n, 0))
        return false;
    const LsShape s = *ls_shape(n->g, n->in[0]);
    bool flatten = n->version < 13;
    int64_t given = ls_onnx_int(n, "axis", flatten ? 1 : -1);
    int axis = flatten && given == s.rank ? s.rank : ls_onnx_axis(n, given, s.rank);
    if (axis < 0)
        return false;
    LsShape rows = {2, {1, 1}};
    for (int k = 0; k < s.rank; k++)
        rows.dim[k >= axis] *= s.dim[k];
    if (!ls_index_affords(n, flatten ? rows.dim[1] : s.dim[axis]))
        return false;
    LsValueId x = flatten ? ls_reshape(n->cx, n->g, n->in[0], &rows) : n->in[0];
    axis = flatten ? 1 : axis;
    LsValueId first = arg_extreme(n, x, axis, false, false);
    if (!ls_is(first))
        return false;
    const LsShape *by = ls_shape(n->g, x);
    LsValueId y = ls_append2(n->cx, n->g, LS_OP_EQUAL, count_up(n, by->dim[axis], axis, by->rank),
                             first, NULL);
    out[0] = ls_reshape(n->cx, n->g, cast(n, y, LS_REAL), &s);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_hardmax = {"Hardmax", 1, hardmax_build};

/* ---- OneHot: indices, depth, [off, on] ---- */
static bool depth_of(LsOnnxNode *n, int64_t *depth)
{
    double v = 0;
    int got = ls_onnx_const_reals(n, 1, 1, &v);
    if (got == -2)
        return false;
    if (got != 1 || !(v >= 1 && v < 0x1p31))
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "depth is %g, not a number of classes", v);
    *depth = (int64_t)v;
    return ls_index_affords(n, *depth);
}

static bool one_hot_build(LsOnnxNode *n, LsValueId out[])
{
    LsGraph *g = n->g;
    LsCtx *cx = n->cx;
    int64_t depth = 1;
    if (!ls_onnx_takes(n, 3, 3) || !depth_of(n, &depth))
        return false;
    LsShape s = *ls_shape(g, n->in[0]);
    LsValueId values = n->in[2];
    if (ls_count(ls_shape(g, values)) != 2 || ls_shape(g, values)->rank != 1)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "values is %s, it must be [off, on]",
                             ls_dims(g, values));
    if (s.rank == LS_MAX_RANK)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL,
                             "the result would have %d axes, %d are handled", s.rank + 1,
                             LS_MAX_RANK);
    int axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", -1), s.rank + 1);
    if (axis < 0)
        return false;
    for (int k = s.rank++; k > axis; k--)
        s.dim[k] = s.dim[k - 1];
    s.dim[axis] = 1;
    LsValueId index = cast(n, ls_reshape(cx, g, n->in[0], &s), LS_I64);
    LsValueId wrapped = ls_append2(cx, g, LS_OP_ADD, index, ls_index_const(n, depth), NULL);
    LsValueId below = ls_append2(cx, g, LS_OP_LESS, index, ls_index_const(n, 0), NULL);
    index = ls_append3(cx, g, LS_OP_WHERE, below, wrapped, index, NULL);
    LsValueId hit = ls_append2(cx, g, LS_OP_EQUAL, index, count_up(n, depth, axis, s.rank), NULL);
    LsValueId off = ls_reshape(cx, g, ls_slice_axis(cx, g, values, 0, 0, 1), &(LsShape){0});
    LsValueId on = ls_reshape(cx, g, ls_slice_axis(cx, g, values, 0, 1, 2), &(LsShape){0});
    out[0] = ls_is(hit) ? ls_append3(cx, g, LS_OP_WHERE, hit, on, off, NULL) : hit;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_one_hot = {"OneHot", 9, one_hot_build};
