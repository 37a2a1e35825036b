/* compiler/ops/cast.c -- Cast, Expand, detach: the same numbers in another type or shape, or
 * without a gradient. */
#include "compiler/onnx/onnx_tensor.h"
#include "compiler/ops/row.h"

/* ---- Cast, to a number; to bool is Not Equal 0 ---- */
static bool cast_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    return ls_infer_out(cx, g, n, g->node[n.i].attr.cast, ls_in_shape(g, n, 0));
}

static LsType cast_type(const LsGraph *g, LsNodeId n)
{
    return g->node[n.i].attr.cast;
}

static bool cast_eval_int(const int64_t x[], const LsAttr *at, int64_t *y)
{
    *y = at->cast == LS_I32 ? (int32_t)(uint32_t)x[0] : x[0];
    return true;
}

LS_EVAL(cast, x[0])
const LsOp ls_op_cast = {
    .name = "Cast", .min_in = 1, .max_in = 1, .nout = 1, .infer = cast_infer, .type = cast_type,
    .grad = ls_grad_zero, .kernel = LS_K_MAP, .expr = "%0", .eval = cast_eval,
    .eval_int = cast_eval_int,
};

static LsValueId cast_to_bool(LsOnnxNode *n, LsValueId x)
{
    LsGraph *g = n->g;
    LsValueId zero = ls_const_real(n->cx, g, 0);
    if (ls_type(g, x) != LS_REAL)
        zero = ls_append1(n->cx, g, LS_OP_CAST, zero, &(LsAttr){.cast = ls_type(g, x)});
    LsValueId is_zero = ls_append2(n->cx, g, LS_OP_EQUAL, x, zero, NULL);
    return ls_is(is_zero) ? ls_append1(n->cx, g, LS_OP_NOT, is_zero, NULL) : is_zero;
}

/* The IR type for an ONNX element type (TensorProto.DataType); every float is `real`. */
static bool cast_target(LsOnnxNode *n, int64_t onnx, LsType *to)
{
    enum { FLOAT = 1, INT32 = 6, INT64 = 7, BOOL = 9, FLOAT16 = 10, DOUBLE = 11, BFLOAT16 = 16 };
    switch (onnx) {
    case FLOAT: case FLOAT16: case DOUBLE: case BFLOAT16: *to = LS_REAL; return true;
    case INT64: *to = LS_I64; return true;
    case INT32: *to = LS_I32; return true;
    case BOOL:  *to = LS_BOOL; return true;
    default:
        return ls_onnx_error(n, LS_E_UNSUPPORTED,
                             "float, double, float16, bfloat16, int32, int64 and bool are supported",
                             "casts to %s", ls_onnx_type_name((int)onnx));
    }
}

static bool cast_as(LsOnnxNode *n, LsValueId out[], LsType to)
{
    LsType from = ls_type(n->g, n->in[0]);
    if (from == to)
        out[0] = n->in[0];
    else if (to == LS_BOOL)
        out[0] = cast_to_bool(n, n->in[0]);
    else
        out[0] = ls_append1(n->cx, n->g, LS_OP_CAST, n->in[0], &(LsAttr){.cast = to});
    return ls_is(out[0]);
}

static bool cast_build(LsOnnxNode *n, LsValueId out[])
{
    LsType to = LS_REAL;
    return ls_onnx_takes(n, 1, 1) && cast_target(n, ls_onnx_int(n, "to", 0), &to)
        && cast_as(n, out, to);
}
const LsOnnxOp ls_onnx_cast = {"Cast", 6, cast_build};

static bool cast_like_build(LsOnnxNode *n, LsValueId out[])
{
    return ls_onnx_takes(n, 2, 2) && cast_as(n, out, ls_type(n->g, n->in[1]));
}
const LsOnnxOp ls_onnx_cast_like = {"CastLike", 15, cast_like_build};

/* ---- Expand: the operand broadcast to attr.shape ---- */
static bool expand_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsShape *to = &g->node[n.i].attr.shape.shape;
    LsShape y = *to;
    if (!ls_shape_broadcast(&y, ls_in_shape(g, n, 0)) || !ls_shape_same(&y, to))
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL, "%s does not broadcast to %s",
                        ls_dims(g, ls_in(g, n, 0)), ls_shape_text(g->arena, to));
    return ls_infer_out(cx, g, n, ls_type(g, ls_in(g, n, 0)), to);
}

static void expand_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                        LsValueId dx[])
{
    (void)want;
    dx[0] = ls_reduce_to(cx, g, dy[0], ls_in_shape(g, n, 0));
}

LS_EVAL_INT(expand, (*y = x[0], true))
const LsOp ls_op_expand = {
    .name = "Expand", .min_in = 1, .max_in = 1, .nout = 1, .infer = expand_infer,
    .grad = expand_grad, .kernel = LS_K_MAP, .expr = "%0", .eval = cast_eval,
    .eval_int = expand_eval_int,
};

/* The ONNX operator broadcasts both ways: a length of the operand takes precedence over 1 in the
 * requested shape. */
static bool expand_build(LsOnnxNode *n, LsValueId out[])
{
    LsShape to = {0};
    if (!ls_onnx_takes(n, 2, 2) || (to.rank = ls_onnx_const_ints(n, 1, LS_MAX_RANK, to.dim)) < 0)
        return false;
    LsShape y = to;
    if (!ls_shape_broadcast(&y, ls_shape(n->g, n->in[0])))
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "%s and the asked shape %s do not broadcast",
                             ls_dims(n->g, n->in[0]), ls_shape_text(n->g->arena, &to));
    out[0] = ls_expand(n->cx, n->g, n->in[0], &y);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_expand = {"Expand", 8, expand_build};

/* ---- detach: stops the gradient ---- */
const LsOp ls_op_detach = {
    .name = "detach", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = ls_grad_zero, .kernel = LS_K_MAP, .expr = "%0", .eval = cast_eval,
    .eval_int = expand_eval_int,
};
