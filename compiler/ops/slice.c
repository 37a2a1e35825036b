/* compiler/ops/slice.c -- Slice and Split. */
#include "compiler/ops/row.h"

/* Length of a clamped range. */
static int64_t slice_count(int64_t start, int64_t stop, int64_t step)
{
    int64_t span = step > 0 ? stop - start : start - stop, stride = step > 0 ? step : -step;
    return span <= 0 ? 0 : (span - 1) / stride + 1;
}

static bool slice_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsSliceAttr *at = &g->node[n.i].attr.slice;
    LsShape y = {.rank = ls_in_shape(g, n, 0)->rank};
    for (int k = 0; k < y.rank; k++)
        y.dim[k] = slice_count(at->start[k], at->stop[k], at->step[k]);
    return ls_infer_out(cx, g, n, ls_type(g, ls_in(g, n, 0)), &y);
}

/* Zeros around dy where the step is 1 along every axis, else a scatter. */
static void slice_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                       LsValueId dx[])
{
    (void)want;
    LsAttr at = g->node[n.i].attr, pad = {.pad = {.mode = LS_PAD_CONSTANT}};
    at.slice.x = *ls_in_shape(g, n, 0);
    bool dense = true;
    for (int k = 0; k < at.slice.x.rank; k++) {
        dense &= at.slice.step[k] == 1;
        pad.pad.lo[k] = at.slice.start[k];
        pad.pad.hi[k] = at.slice.x.dim[k] - at.slice.stop[k];
    }
    dx[0] = dense ? ls_append1(cx, g, LS_OP_PAD, dy[0], &pad)
                  : ls_append1(cx, g, LS_OP_SLICE_GRAD, dy[0], &at);
}

const LsOp ls_op_slice = {
    .name = "Slice", .min_in = 1, .max_in = 1, .nout = 1, .infer = slice_infer, .grad = slice_grad,
    .kernel = LS_K_MOVE, .layout = LS_LAY_SAME,
};

static bool slice_grad_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    return ls_infer_out(cx, g, n, LS_REAL, &g->node[n.i].attr.slice.x);
}

const LsOp ls_op_slice_grad = {
    .name = "slice_grad", .min_in = 1, .max_in = 1, .nout = 1, .infer = slice_grad_infer,
    .kernel = LS_K_MOVE, .layout = LS_LAY_SAME,
};

/* ---- Slice ---- */
static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* ONNX's rules for one axis: negative ends count from the back, and the range is clamped to the
 * axis. */
static void slice_axis(LsSliceAttr *at, int k, int64_t dim, int64_t start, int64_t stop,
                       int64_t step)
{
    start += start < 0 ? dim : 0;
    stop += stop < 0 ? dim : 0;
    at->step[k] = clamp(step, -INT64_C(1) - dim, dim + 1);      /* a larger step skips no more
                                                                 * elements */
    at->start[k] = step > 0 || dim == 0 ? clamp(start, 0, dim) : clamp(start, 0, dim - 1);
    at->stop[k] = step > 0 ? clamp(stop, 0, dim) : clamp(stop, -1, dim - 1);
}

/* A constant without elements: a slice of nothing, which exporters write where a part may be
 * missing and join to others. Operators that cannot do without elements refuse it. */
static LsValueId nothing(LsOnnxNode *n, LsValueId x, const LsShape *y)
{
    return ls_const_add(n->cx, n->g, ls_type(n->g, x), y,
                        ls_arena_alloc(n->g->arena, 1, sizeof(int64_t)));
}

/* Reads starts, ends, axes, steps; the number of entries, negative after an error. */
static int slice_ranges(LsOnnxNode *n, int64_t start[], int64_t stop[], int64_t axis[],
                        int64_t step[])
{
    int64_t *list[] = {start, stop, axis, step};
    static const char *const name[] = {"starts", "ends", "axes", "steps"};
    int count[4];
    for (int k = 0; k < 4; k++) {
        count[k] = n->version >= 10 ? ls_onnx_const_ints(n, k + 1, LS_MAX_RANK, list[k])
                   : k < 3          ? ls_onnx_ints(n, name[k], LS_MAX_RANK, list[k]) : -1;
        if (count[k] == -2)
            return -1;
        if (count[k] == -1 && k < 2)
            return (ls_onnx_error(n, LS_E_ATTR, NULL, "%s are missing", name[k]), -1);
        if (count[k] >= 0 && count[k] != count[0])
            return (ls_onnx_error(n, LS_E_ATTR, NULL, "%s has %d entries, starts has %d", name[k],
                                  count[k], count[0]), -1);
        for (int i = 0; count[k] == -1 && i < count[0]; i++)
            list[k][i] = k == 2 ? i : 1;
    }
    return count[0];
}

static bool slice_build(LsOnnxNode *n, LsValueId out[])
{
    int64_t start[LS_MAX_RANK], stop[LS_MAX_RANK], axis[LS_MAX_RANK], step[LS_MAX_RANK];
    if (!ls_onnx_takes(n, n->version < 10 ? 1 : 3, n->version < 10 ? 1 : 5))
        return false;
    int count = slice_ranges(n, start, stop, axis, step);
    if (count < 0)
        return false;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    LsAttr at = {0};
    for (int k = 0; k < x.rank; k++)
        slice_axis(&at.slice, k, x.dim[k], 0, x.dim[k], 1);
    uint32_t seen = 0;
    for (int i = 0; i < count; i++) {
        int k = ls_onnx_axis(n, axis[i], x.rank);
        if (k < 0)
            return false;
        if (step[i] == 0 || (seen >> k & 1))
            return ls_onnx_error(n, LS_E_ATTR, NULL, seen >> k & 1 ? "axes name axis %d twice"
                                 : "the step along axis %d is 0", k);
        seen |= 1u << k;
        slice_axis(&at.slice, k, x.dim[k], start[i], stop[i], step[i]);
    }
    LsShape y = {.rank = x.rank};
    bool all = true;
    for (int k = 0; k < x.rank; k++) {
        all &= at.slice.start[k] == 0 && at.slice.stop[k] == x.dim[k] && at.slice.step[k] == 1;
        y.dim[k] = slice_count(at.slice.start[k], at.slice.stop[k], at.slice.step[k]);
    }
    out[0] = all                 ? n->in[0]
             : ls_count(&y) == 0 ? nothing(n, n->in[0], &y)
                                 : ls_append1(n->cx, n->g, LS_OP_SLICE, n->in[0], &at);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_slice = {"Slice", 1, slice_build};

/* ---- Split: one slice per result ---- */
/* Lengths as listed in the file: an attribute, an operand from opset 13. -1: none; -2: error. */
static int split_listed(LsOnnxNode *n, int max, int64_t len[])
{
    if (n->version < 13)
        return ls_onnx_ints(n, "split", max, len);
    return ls_onnx_const_ints(n, 1, max, len);
}

/* Lengths when the file lists none: equal, from opset 18 with a smaller last one. */
static bool split_even(LsOnnxNode *n, int64_t dim, int parts, int64_t len[])
{
    if (n->version < 18 && dim % parts != 0)
        return ls_onnx_error(n, LS_E_SHAPE, "list the lengths in `split`",
                             "length %" PRId64 " does not divide into %d equal parts", dim, parts);
    int64_t chunk = (dim + parts - 1) / parts;
    for (int k = 0; k < parts; k++) {
        len[k] = dim < chunk ? dim : chunk;
        dim -= len[k];
    }
    return true;
}

static bool split_lengths(LsOnnxNode *n, int64_t dim, int parts, int64_t len[])
{
    int listed = split_listed(n, parts, len);
    if (listed == -2)
        return false;
    if (listed == -1)
        return split_even(n, dim, parts, len);
    int64_t left = dim;
    bool fits = listed >= n->nout;
    for (int k = 0; fits && k < listed; k++) {
        fits = len[k] >= 0 && len[k] <= left;
        left -= fits ? len[k] : 0;
    }
    if (!fits || left != 0)
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "split lists %d lengths that do not add up to %" PRId64
                             " for %d results",
                             listed, dim, n->nout);
    return true;
}

/* Number of parts of the node: results left out at the end count too. */
static int split_parts(LsOnnxNode *n)
{
    int64_t parts = n->nout;
    if (n->version >= 18)
        parts = ls_onnx_int(n, "num_outputs", parts);
    if (n->version >= 13 && n->nin > 1 && ls_is(n->in[1]))
        parts = ls_count(ls_shape(n->g, n->in[1]));
    return parts < n->nout || parts > 1 << 16 ? -1 : (int)parts;
}

static bool split_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, n->version < 13 ? 1 : 2))
        return false;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    int axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", 0), x.rank), parts = split_parts(n);
    if (axis < 0)
        return false;
    if (parts <= 0)
        return ls_onnx_error(n, LS_E_ATTR, NULL,
                             "the node has %d results, which is not what it splits into", n->nout);
    int64_t *len = ls_arena_alloc(n->g->arena, (size_t)parts, sizeof *len), at = 0;
    if (!split_lengths(n, x.dim[axis], parts, len))
        return false;
    for (int k = 0; k < n->nout; k++) {
        LsShape none = x;
        none.dim[axis] = 0;
        out[k] = len[k] > 0 ? ls_slice_axis(n->cx, n->g, n->in[0], axis, at, at + len[k])
                            : nothing(n, n->in[0], &none);
        at += len[k];
        if (!ls_is(out[k]))
            return false;
    }
    return true;
}
const LsOnnxOp ls_onnx_split = {"Split", 2, split_build};
