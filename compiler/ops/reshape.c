/* compiler/ops/reshape.c -- reshapes, and operators built from them. */
#include "compiler/ops/row.h"

static bool reshape_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsShape *x = ls_in_shape(g, n, 0), *to = &g->node[n.i].attr.shape.shape;
    LsType type = ls_type(g, ls_in(g, n, 0));
    if (!ls_infer_out(cx, g, n, type, to))
        return false;
    if (ls_count(x) != ls_count(to))
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE,
                        "a batch size fixed at export may not fit the bound batch size",
                        "%s has %" PRId64 " elements, %s has %" PRId64, ls_shape_text(g->arena, x),
                        ls_count(x), ls_shape_text(g->arena, to), ls_count(to));
    return true;
}

static void reshape_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                         LsValueId dx[])
{
    (void)want;
    dx[0] = ls_reshape(cx, g, dy[0], ls_in_shape(g, n, 0));
}

const LsOp ls_op_reshape = {
    .name = "Reshape", .min_in = 1, .max_in = 1, .nout = 1, .infer = reshape_infer,
    .grad = reshape_grad, .kernel = LS_K_VIEW, .layout = LS_LAY_ROW,
};

static bool either_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    return ls_infer_out(cx, g, n, ls_type(g, ls_in(g, n, 0)), ls_in_shape(g, n, 0));
}

const LsOp ls_op_either = {
    .name = "either",
    .min_in = 2,
    .max_in = 2,
    .nout = 1,
    .infer = either_infer,
    .kernel = LS_K_VIEW,
};

static bool convert_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    return ls_infer_out(cx, g, n, ls_type(g, ls_in(g, n, 0)), ls_in_shape(g, n, 0));
}

const LsOp ls_op_convert = {
    .name = "convert", .min_in = 1, .max_in = 1, .nout = 1, .infer = convert_infer,
    .kernel = LS_K_MOVE, .layout = LS_LAY_FREE,
};

/* A Reshape to the shape that a Reshape in front of it took away gives the value back: no layout
 * changes on the way. */
static bool reshape_to(LsOnnxNode *n, LsValueId out[], const LsShape *to)
{
    const LsGraph *g = n->g;
    const LsNodeId def = g->value[n->in[0].i].def;
    const bool back = def.i != 0 && g->node[def.i].op == LS_OP_RESHAPE
                      && ls_shape_same(ls_in_shape(g, def, 0), to);
    out[0] = back ? ls_in(g, def, 0) : ls_reshape(n->cx, n->g, n->in[0], to);
    return ls_is(out[0]);
}

/* Fills in the -1 of `to`: `count` elements over the product of the rest. */
static bool reshape_rest(LsOnnxNode *n, LsShape *to, int64_t count)
{
    int rest = -1;
    int64_t others = 1;
    for (int k = 0; k < to->rank; k++) {
        if (to->dim[k] == -1 && rest >= 0)
            return ls_onnx_error(n, LS_E_ATTR, NULL, "shape has -1 twice, at %d and %d", rest, k);
        if (to->dim[k] < -1)
            return ls_onnx_error(n, LS_E_ATTR, NULL, "shape has %" PRId64 " at %d", to->dim[k], k);
        if (to->dim[k] == -1)
            rest = k;
        else if (__builtin_mul_overflow(others, to->dim[k], &others))
            return ls_onnx_error(n, LS_E_SHAPE, NULL,
                                 "shape has more elements than can be counted");
    }
    if (rest < 0)
        return true;
    if (others == 0 || count % others != 0)
        return ls_onnx_error(n, LS_E_SHAPE,
                             "a batch size fixed at export may not fit the bound batch size",
                             "%" PRId64 " elements (%s) do not divide by %" PRId64
                             ", the product of the lengths given",
                             count, ls_dims(n->g, n->in[0]), others);
    to->dim[rest] = count / others;
    return true;
}

static bool reshape_build(LsOnnxNode *n, LsValueId out[])
{
    LsShape to = {0};
    if (!ls_onnx_takes(n, n->version < 5 ? 1 : 2, 2))
        return false;
    to.rank = n->version < 5 ? ls_onnx_ints(n, "shape", LS_MAX_RANK, to.dim)
                             : ls_onnx_const_ints(n, 1, LS_MAX_RANK, to.dim);
    if (to.rank < 0)
        return to.rank == -1 && ls_onnx_error(n, LS_E_ATTR, NULL, "the new shape is missing");
    const LsShape x = *ls_shape(n->g, n->in[0]);
    bool zero_is_zero = ls_onnx_int(n, "allowzero", 0) != 0;
    for (int k = 0; k < to.rank && !zero_is_zero; k++) {
        if (to.dim[k] != 0)
            continue;
        if (k >= x.rank)
            return ls_onnx_error(n, LS_E_SHAPE, NULL,
                                 "shape has 0 (as before) at %d, the operand %s has no such axis",
                                 k, ls_shape_text(n->g->arena, &x));
        to.dim[k] = x.dim[k];
    }
    return reshape_rest(n, &to, ls_count(&x)) && reshape_to(n, out, &to);
}
const LsOnnxOp ls_onnx_reshape = {"Reshape", 1, reshape_build};

static bool flatten_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1))
        return false;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    int64_t axis = ls_onnx_int(n, "axis", 1);
    if (axis != x.rank && (axis = ls_onnx_axis(n, axis, x.rank)) < 0)
        return false;
    LsShape to = {2, {1, 1}};
    for (int k = 0; k < x.rank; k++)
        to.dim[k >= axis] *= x.dim[k];
    return reshape_to(n, out, &to);
}
const LsOnnxOp ls_onnx_flatten = {"Flatten", 1, flatten_build};

/* The axes of Squeeze or Unsqueeze as a bit set over `rank` axes: attribute, or operand from
 * opset 13. */
static bool axes_of(LsOnnxNode *n, int rank, bool *absent, uint32_t *set)
{
    int64_t list[LS_MAX_RANK];
    int count = n->version < 13 ? ls_onnx_ints(n, "axes", LS_MAX_RANK, list)
                                : ls_onnx_const_ints(n, 1, LS_MAX_RANK, list);
    *set = 0;
    *absent = count == -1;
    for (int k = 0; k < count; k++) {
        int axis = ls_onnx_axis(n, list[k], rank);
        if (axis < 0)
            return false;
        if (*set >> axis & 1)
            return ls_onnx_error(n, LS_E_ATTR, NULL, "axes name axis %d twice", axis);
        *set |= 1u << axis;
    }
    return count >= -1;
}

static bool squeeze_build(LsOnnxNode *n, LsValueId out[])
{
    bool all;
    uint32_t axes;
    if (!ls_onnx_takes(n, 1, n->version < 13 ? 1 : 2)
        || !axes_of(n, ls_shape(n->g, n->in[0])->rank, &all, &axes))
        return false;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    LsShape to = {0};
    for (int k = 0; k < x.rank; k++) {
        if ((axes >> k & 1) && x.dim[k] != 1)
            return ls_onnx_error(n, LS_E_SHAPE, NULL, "axis %d of %s has length %" PRId64 ", not 1",
                                 k, ls_shape_text(n->g->arena, &x), x.dim[k]);
        if (all ? x.dim[k] != 1 : !(axes >> k & 1))
            to.dim[to.rank++] = x.dim[k];
    }
    return reshape_to(n, out, &to);
}
const LsOnnxOp ls_onnx_squeeze = {"Squeeze", 1, squeeze_build};

static bool unsqueeze_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, n->version < 13 ? 1 : 2, 2))
        return false;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    int64_t list[LS_MAX_RANK];
    int more = n->version < 13 ? ls_onnx_ints(n, "axes", LS_MAX_RANK, list)
                               : ls_onnx_const_ints(n, 1, LS_MAX_RANK, list);
    if (more < 0)
        return more == -1 && ls_onnx_error(n, LS_E_ATTR, NULL, "axes are missing");
    if (x.rank + more > LS_MAX_RANK)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL,
                             "the result would have %d axes, %d are supported", x.rank + more,
                             LS_MAX_RANK);
    LsShape to = {.rank = x.rank + more};
    bool absent;
    uint32_t axes;
    if (!axes_of(n, to.rank, &absent, &axes))
        return false;
    for (int k = 0, from = 0; k < to.rank; k++)
        to.dim[k] = axes >> k & 1 ? 1 : x.dim[from++];
    return reshape_to(n, out, &to);
}
const LsOnnxOp ls_onnx_unsqueeze = {"Unsqueeze", 1, unsqueeze_build};
