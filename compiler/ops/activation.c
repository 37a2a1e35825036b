/* compiler/ops/activation.c -- piecewise linear activations; smooth.c has the smooth ones.
 *
 * Comparisons are written so that a NaN passes through. At a kink the gradient is PyTorch's:
 * tests/compiler/test_ops_kinks.c lists all kinks. Gradients read the result where it determines
 * the operand's piece: the operand need not be kept then. */
#include "compiler/onnx/onnx_found_weights.h"
#include "compiler/ops/row.h"

/* Appends a gradient row over dy and `saw`, with the attributes of n. */
static LsValueId piecewise_grad(LsCtx *cx, LsGraph *g, LsNodeId n, LsOpCode op, LsValueId dy,
                                LsValueId saw)
{
    LsAttr at = g->node[n.i].attr;
    return ls_append2(cx, g, op, dy, saw, &at);
}

static void relu_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                      LsValueId dx[])
{
    (void)want;
    dx[0] = piecewise_grad(cx, g, n, LS_OP_RELU_GRAD, dy[0], ls_out(g, n, 0));
}

LS_EVAL(relu, x[0] < 0 ? 0 : x[0])
LS_EVAL_INT(relu, (*y = x[0] < 0 ? 0 : x[0], true))
const LsOp ls_op_relu = {
    .name = "Relu", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map, .grad = relu_grad,
    .kernel = LS_K_MAP, .expr = "%0 < 0 ? 0 : %0", .eval = relu_eval, .eval_int = relu_eval_int,
};
const LsOp ls_op_relu_grad = {      /* dy, y */
    .name = "relu_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%1 > 0 ? %0 : 0",
};
LS_ONNX_SIMPLE(relu, "Relu", 6, LS_OP_RELU, 1)

/* ---- LeakyRelu, PRelu: slope below zero ---- */
static void leaky_relu_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                            const bool want[], LsValueId dx[])
{
    (void)want;                 /* a negative slope changes the sign: then only the operand tells
                                 * the piece */
    bool sign_kept = g->node[n.i].attr.scalar.a >= 0;
    dx[0] = piecewise_grad(cx, g, n, LS_OP_LEAKY_RELU_GRAD, dy[0],
                           sign_kept ? ls_out(g, n, 0) : ls_in(g, n, 0));
}

LS_EVAL(leaky_relu, x[0] < 0 ? at->scalar.a * x[0] : x[0])
const LsOp ls_op_leaky_relu = {     /* slope a */
    .name = "LeakyRelu", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = leaky_relu_grad, .kernel = LS_K_MAP, .expr = "%0 < 0 ? $a * %0 : %0",
    .eval = leaky_relu_eval,
};
const LsOp ls_op_leaky_relu_grad = {        /* dy, y or x */
    .name = "leaky_relu_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%1 > 0 ? %0 : $a * %0",
};

static bool leaky_relu_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1))
        return false;
    LsAttr at = {.scalar = {.a = ls_onnx_float(n, "alpha", 0.01)}};
    out[0] = ls_append1(n->cx, n->g, LS_OP_LEAKY_RELU, n->in[0], &at);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_leaky_relu = {"LeakyRelu", 6, leaky_relu_build};

/* The slope's gradient: dy min(x, 0). */
static void prelu_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                       LsValueId dx[])
{
    LsValueId x = ls_in(g, n, 0), slope = ls_in(g, n, 1);
    if (want[0])
        dx[0] = ls_append3(cx, g, LS_OP_PRELU_GRAD, dy[0], x, slope, NULL);
    if (want[1]) {
        LsValueId below = ls_append2(cx, g, LS_OP_MIN, x, ls_const_real(cx, g, 0), NULL);
        LsValueId d = ls_append2(cx, g, LS_OP_MUL, dy[0], below, NULL);
        dx[1] = ls_reduce_to(cx, g, d, *ls_shape(g, slope));
    }
}

static bool prelu_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    if (!ls_infer_map(cx, g, n))
        return false;
    if (!ls_shape_same(ls_shape(g, ls_out(g, n, 0)), ls_in_shape(g, n, 0)))
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE,
                        "a slope per channel has shape C x 1 x 1 for images",
                        "X is %s, the slope %s does not broadcast to it",
                        ls_dims(g, ls_in(g, n, 0)), ls_dims(g, ls_in(g, n, 1)));
    return true;
}

LS_EVAL(prelu, x[0] < 0 ? x[1] * x[0] : x[0])
const LsOp ls_op_prelu = {          /* X, slope */
    .name = "PRelu", .min_in = 2, .max_in = 2, .nout = 1, .infer = prelu_infer, .grad = prelu_grad,
    .kernel = LS_K_MAP, .expr = "%0 < 0 ? %1 * %0 : %0", .eval = prelu_eval,
};
const LsOp ls_op_prelu_grad = {     /* dy, X, slope */
    .name = "prelu_grad", .min_in = 3, .max_in = 3, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%1 > 0 ? %0 : %2 * %0",
};

static bool prelu_build(LsOnnxNode *n, LsValueId out[])
{
    ls_onnx_weight(n, 1);
    return ls_onnx_simple(n, out, LS_OP_PRELU, 2);
}
const LsOnnxOp ls_onnx_prelu = {"PRelu", 7, prelu_build};

/* ---- HardSigmoid: min(max(a x + b, 0), 1) ---- */
static void hard_sigmoid_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                              const bool want[], LsValueId dx[])
{
    (void)want;
    dx[0] = piecewise_grad(cx, g, n, LS_OP_HARD_SIGMOID_GRAD, dy[0], ls_out(g, n, 0));
}

static double hard_sigmoid_eval(const double x[], const LsAttr *at)
{
    double y = at->scalar.a * x[0] + at->scalar.b;
    return y < 0 ? 0 : y > 1 ? 1 : y;
}

const LsOp ls_op_hard_sigmoid = {
    .name = "HardSigmoid", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = hard_sigmoid_grad, .kernel = LS_K_MAP,
    .expr = "$a * %0 + $b < 0 ? 0 : $a * %0 + $b > 1 ? 1 : $a * %0 + $b", .eval = hard_sigmoid_eval,
};
const LsOp ls_op_hard_sigmoid_grad = {      /* dy, y */
    .name = "hard_sigmoid_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%1 > 0 && %1 < 1 ? $a * %0 : 0",
};

static bool hard_sigmoid_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1))
        return false;
    LsAttr at = {
        .scalar = {.a = ls_onnx_float(n, "alpha", 0.2), .b = ls_onnx_float(n, "beta", 0.5)}};
    out[0] = ls_append1(n->cx, n->g, LS_OP_HARD_SIGMOID, n->in[0], &at);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_hard_sigmoid = {"HardSigmoid", 6, hard_sigmoid_build};

/* ---- HardSwish: x min(max(x / 6 + 1/2, 0), 1). Its gradient needs x. ---- */
static void hard_swish_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                            const bool want[], LsValueId dx[])
{
    (void)want;
    dx[0] = piecewise_grad(cx, g, n, LS_OP_HARD_SWISH_GRAD, dy[0], ls_in(g, n, 0));
}

LS_EVAL(hard_swish, x[0] < -3 ? 0 : x[0] > 3 ? x[0] : x[0] * (x[0] / 6 + 0.5))
const LsOp ls_op_hard_swish = {
    .name = "HardSwish", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = hard_swish_grad, .kernel = LS_K_MAP,
    .expr = "%0 < -3 ? 0 : %0 > 3 ? %0 : %0 * (%0 * LS_R(0.16666666666666667) + LS_R(0.5))",
    .eval = hard_swish_eval,
};
const LsOp ls_op_hard_swish_grad = {        /* dy, x */
    .name = "hard_swish_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP,
    .expr = "%1 <= -3 ? 0 : %1 >= 3 ? %0 : %0 * (%1 * LS_R(0.33333333333333333) + LS_R(0.5))",
};
LS_ONNX_SIMPLE(hard_swish, "HardSwish", 14, LS_OP_HARD_SWISH, 1)
