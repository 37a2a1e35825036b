/* compiler/ops/cast.c -- Cast, Expand, detach: the same numbers in another type or shape, or
 * without a gradient. */
#include "compiler/onnx_file/onnx_tensor.h"
#include "compiler/ops/row.h"

#include <math.h>

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

/* ---- rounding to 16 bits, as a cast does; the gradient passes. In a program in double precision
 * there is none. ---- */
static void round_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                       LsValueId dx[])
{
    (void)cx, (void)g, (void)n, (void)want;
    dx[0] = dy[0];
}

/* x with this many binary digits, and no digit below 2^lowest; halves to even. */
static double rounded(double x, int digits, int lowest)
{
    if (x == 0 || !isfinite(x))
        return x;
    int last = ilogb(x) - digits + 1;
    double step = ldexp(1, last < lowest ? lowest : last);
    return nearbyint(x / step) * step;
}

static double to_half(double x)
{
    double y = rounded(x, 11, -24);
    return fabs(y) > 65504 ? copysign(INFINITY, y) : y;
}

LS_EVAL(round_half, to_half(x[0]))
const LsOp ls_op_round_half = {
    .name = "round_half",
    .min_in = 1,
    .max_in = 1,
    .nout = 1,
    .infer = ls_infer_map,
    .grad = round_grad,
    .kernel = LS_K_MAP,
    .expr = "ls_round_half(%0)",
    .eval = round_half_eval,
};
LS_EVAL(round_brain, rounded(x[0], 8, -133))
const LsOp ls_op_round_brain = {
    .name = "round_brain",
    .min_in = 1,
    .max_in = 1,
    .nout = 1,
    .infer = ls_infer_map,
    .grad = round_grad,
    .kernel = LS_K_MAP,
    .expr = "ls_round_brain(%0)",
    .eval = round_brain_eval,
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

bool ls_onnx_cast_type(LsOnnxNode *n, LsValueId out[], LsType to)
{
    LsType from = ls_type(n->g, out[0]);
    if (from == to)
        return true;
    if (to == LS_BOOL)
        out[0] = cast_to_bool(n, out[0]);
    else
        out[0] = ls_append1(n->cx, n->g, LS_OP_CAST, out[0], &(LsAttr){.cast = to});
    return ls_is(out[0]);
}

bool ls_onnx_cast_to(LsOnnxNode *n, LsValueId out[], int64_t onnx)
{
    LsType to;
    if (onnx < 0 || onnx > INT32_MAX || !ls_onnx_type((int)onnx, &to))
        return ls_onnx_error(
            n, LS_E_UNSUPPORTED,
            "floats of 16 bits and more, integers of 8 bits and more, and bool are supported",
            "casts to %s", ls_onnx_type_name(onnx < 0 || onnx > INT32_MAX ? 0 : (int)onnx));
    return ls_onnx_cast_type(n, out, to);
}

/* The importer cuts or rounds the result to the width of the type that it has in the file. */
static bool cast_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1))
        return false;
    out[0] = n->in[0];
    return ls_onnx_cast_to(n, out, ls_onnx_int(n, "to", 0));
}
const LsOnnxOp ls_onnx_cast = {"Cast", 6, cast_build};

static bool cast_like_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 2, 2))
        return false;
    out[0] = n->in[0];
    return ls_onnx_cast_type(n, out, ls_type(n->g, n->in[1]));
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
    dx[0] = ls_reduce_to(cx, g, dy[0], *ls_in_shape(g, n, 0));
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
    out[0] = ls_expand(n->cx, n->g, n->in[0], y);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_expand = {"Expand", 8, expand_build};

/* ---- detach: stops the gradient ---- */
const LsOp ls_op_detach = {
    .name = "detach", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = ls_grad_zero, .kernel = LS_K_MAP, .expr = "%0", .eval = cast_eval,
    .eval_int = expand_eval_int,
};
