/* compiler/ops/arith.c -- sums, differences, products and quotients, with NumPy's broadcasting. */
#include "compiler/ops/row.h"

static void add_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                     LsValueId dx[])
{
    for (int k = 0; k < 2; k++)
        if (want[k])
            dx[k] = ls_reduce_to(cx, g, dy[0], *ls_in_shape(g, n, k));
}

LS_EVAL(add, x[0] + x[1])
LS_EVAL_INT(add, !__builtin_add_overflow(x[0], x[1], y))
const LsOp ls_op_add = {
    .name = "Add", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map, .grad = add_grad,
    .kernel = LS_K_MAP, .expr = "%0 + %1", .eval = add_eval, .eval_int = add_eval_int,
};

static void sub_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                     LsValueId dx[])
{
    add_grad(cx, g, n, dy, want, dx);
    if (want[1])
        dx[1] = ls_append1(cx, g, LS_OP_NEG, dx[1], NULL);
}

LS_EVAL(sub, x[0] - x[1])
LS_EVAL_INT(sub, !__builtin_sub_overflow(x[0], x[1], y))
const LsOp ls_op_sub = {
    .name = "Sub", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map, .grad = sub_grad,
    .kernel = LS_K_MAP, .expr = "%0 - %1", .eval = sub_eval, .eval_int = sub_eval_int,
};

static void mul_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                     LsValueId dx[])
{
    LsValueId x[2] = {ls_in(g, n, 0), ls_in(g, n, 1)};
    if (x[0].i == x[1].i) {         /* a square */
        dx[0] = ls_append2(cx, g, LS_OP_MUL, ls_scale(cx, g, dy[0], 2), x[0], NULL);
        return;
    }
    for (int k = 0; k < 2; k++) {
        LsValueId d =
            want[k] ? ls_append2(cx, g, LS_OP_MUL, dy[0], x[1 - k], NULL) : (LsValueId){0};
        if (want[k])
            dx[k] = ls_reduce_to(cx, g, d, *ls_shape(g, x[k]));
    }
}

LS_EVAL(mul, x[0] * x[1])
LS_EVAL_INT(mul, !__builtin_mul_overflow(x[0], x[1], y))
const LsOp ls_op_mul = {
    .name = "Mul", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map, .grad = mul_grad,
    .kernel = LS_K_MAP, .expr = "%0 * %1", .eval = mul_eval, .eval_int = mul_eval_int,
};

/* Gradient of the divisor: -dy (a / b) / b. It reads the result instead of the dividend. */
static void div_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                     LsValueId dx[])
{
    LsValueId a = ls_in(g, n, 0), b = ls_in(g, n, 1), y = ls_out(g, n, 0);
    LsValueId q = ls_append2(cx, g, LS_OP_DIV, dy[0], b, NULL);
    if (want[0])
        dx[0] = ls_reduce_to(cx, g, q, *ls_shape(g, a));
    if (want[1]) {
        LsValueId t = ls_append2(cx, g, LS_OP_MUL, q, y, NULL);
        dx[1] = ls_append1(cx, g, LS_OP_NEG, ls_reduce_to(cx, g, t, *ls_shape(g, b)), NULL);
    }
}

LS_EVAL(div, x[0] / x[1])
LS_EVAL_INT(div, x[1] != 0 && !(x[1] == -1 && x[0] == INT64_MIN) && (*y = x[0] / x[1], true))
const LsOp ls_op_div = {
    .name = "Div", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map, .grad = div_grad,
    .kernel = LS_K_MAP, .expr = "%0 / %1", .eval = div_eval, .eval_int = div_eval_int,
};

/* Integer division at run time: a zero divisor in the data must not raise a signal. */
const LsOp ls_op_div_int = {
    .name = "div_int", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .grad = ls_grad_zero, .kernel = LS_K_MAP, .expr = "%1 == 0 ? 0 : %1 == -1 ? 0 - %0 : %0 / %1",
    .eval_int = div_eval_int,
};

static void neg_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                     LsValueId dx[])
{
    (void)n, (void)want;
    dx[0] = ls_append1(cx, g, LS_OP_NEG, dy[0], NULL);
}

LS_EVAL(neg, -x[0])
LS_EVAL_INT(neg, !__builtin_sub_overflow(0, x[0], y))
const LsOp ls_op_neg = {
    .name = "Neg", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map, .grad = neg_grad,
    .kernel = LS_K_MAP, .expr = "-%0", .eval = neg_eval, .eval_int = neg_eval_int,
};

LS_ONNX_SIMPLE(add, "Add", 7, LS_OP_ADD, 2)
LS_ONNX_SIMPLE(sub, "Sub", 7, LS_OP_SUB, 2)
LS_ONNX_SIMPLE(mul, "Mul", 7, LS_OP_MUL, 2)
LS_ONNX_SIMPLE(neg, "Neg", 6, LS_OP_NEG, 1)

static bool div_build(LsOnnxNode *n, LsValueId out[])
{
    bool ints = n->nin > 0 && ls_type(n->g, n->in[0]) != LS_REAL;
    return ls_onnx_simple(n, out, ints ? LS_OP_DIV_INT : LS_OP_DIV, 2);
}
const LsOnnxOp ls_onnx_div = {"Div", 7, div_build};

static bool sum_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, n->nin > 1 ? n->nin : 1, INT32_MAX))
        return false;
    out[0] = n->in[0];
    for (int k = 1; k < n->nin && ls_is(out[0]); k++)
        out[0] = ls_append2(n->cx, n->g, LS_OP_ADD, out[0], n->in[k], NULL);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_sum = {"Sum", 6, sum_build};

static bool mean_build(LsOnnxNode *n, LsValueId out[])
{
    if (!sum_build(n, out))
        return false;
    out[0] = ls_scale(n->cx, n->g, out[0], 1.0 / n->nin);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_mean = {"Mean", 6, mean_build};
