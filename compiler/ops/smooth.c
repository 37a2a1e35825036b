/* compiler/ops/smooth.c -- smooth activations: logistic, hyperbolic tangent, error function and
 * relatives. */
#include "compiler/ops/row.h"

#include <math.h>

/* ---- Sigmoid ---- */
LS_GRAD_OF(sigmoid, LS_OP_SIGMOID_GRAD, ls_out)
LS_EVAL(sigmoid, 1 / (1 + exp(-x[0])))
const LsOp ls_op_sigmoid = {
    .name = "Sigmoid", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = sigmoid_grad, .kernel = LS_K_MAP, .expr = "ls_sigmoid(%0)", .eval = sigmoid_eval,
};
const LsOp ls_op_sigmoid_grad = {   /* dy, y */
    .name = "sigmoid_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%0 * %1 * (1 - %1)",
};
LS_ONNX_SIMPLE(sigmoid, "Sigmoid", 6, LS_OP_SIGMOID, 1)

/* ---- Tanh ---- */
LS_GRAD_OF(tanh, LS_OP_TANH_GRAD, ls_out)
LS_EVAL(tanh, tanh(x[0]))
const LsOp ls_op_tanh = {
    .name = "Tanh", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map, .grad = tanh_grad,
    .kernel = LS_K_MAP, .expr = "ls_tanh(%0)", .eval = tanh_eval,
};
const LsOp ls_op_tanh_grad = {      /* dy, y */
    .name = "tanh_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%0 * (1 - %1 * %1)",
};
LS_ONNX_SIMPLE(tanh, "Tanh", 6, LS_OP_TANH, 1)

/* ---- Swish: x sigmoid(a x); SwiGLU: the Swish of A times B ---- */
static LsValueId swish_of(LsOnnxNode *n, LsValueId x)
{
    LsValueId t = ls_scale(n->cx, n->g, x, ls_onnx_float(n, "alpha", 1));
    t = ls_is(t) ? ls_append1(n->cx, n->g, LS_OP_SIGMOID, t, NULL) : t;
    return ls_is(t) ? ls_append2(n->cx, n->g, LS_OP_MUL, x, t, NULL) : t;
}

static bool swish_build(LsOnnxNode *n, LsValueId out[])
{
    return ls_onnx_takes(n, 1, 1) && ls_onnx_takes_real(n, 0)
           && ls_is(out[0] = swish_of(n, n->in[0]));
}
const LsOnnxOp ls_onnx_swish = {"Swish", 24, swish_build};

static bool swiglu_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 2, 2) || !ls_onnx_takes_real(n, 0) || !ls_onnx_takes_real(n, 1))
        return false;
    if (!ls_shape_same(ls_shape(n->g, n->in[0]), ls_shape(n->g, n->in[1])))
        return ls_onnx_error(n, LS_E_SHAPE, "SwiGLU does not broadcast", "A is %s, B is %s",
                             ls_dims(n->g, n->in[0]), ls_dims(n->g, n->in[1]));
    LsValueId gate = swish_of(n, n->in[0]);
    out[0] = ls_is(gate) ? ls_append2(n->cx, n->g, LS_OP_MUL, gate, n->in[1], NULL) : gate;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_swiglu = {"SwiGLU", 28, swiglu_build};

/* ---- Softplus: log(1 + exp x) ---- */
static void softplus_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                          const bool want[], LsValueId dx[])
{
    (void)want;         /* computed from the result, 1 - exp(-y) cancels for small y */
    LsValueId s = ls_append1(cx, g, LS_OP_SIGMOID, ls_in(g, n, 0), NULL);
    dx[0] = ls_append2(cx, g, LS_OP_MUL, dy[0], s, NULL);
}

LS_EVAL(softplus, x[0] > 0 ? x[0] + log1p(exp(-x[0])) : log1p(exp(x[0])))
const LsOp ls_op_softplus = {
    .name = "Softplus", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = softplus_grad, .kernel = LS_K_MAP, .expr = "ls_softplus(%0)", .eval = softplus_eval,
};
LS_ONNX_SIMPLE(softplus, "Softplus", 1, LS_OP_SOFTPLUS, 1)

/* ---- Mish: x tanh(softplus(x)) ---- */
static bool mish_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1))
        return false;
    LsValueId t = ls_append1(n->cx, n->g, LS_OP_SOFTPLUS, n->in[0], NULL);
    t = ls_is(t) ? ls_append1(n->cx, n->g, LS_OP_TANH, t, NULL) : t;
    out[0] = ls_is(t) ? ls_append2(n->cx, n->g, LS_OP_MUL, n->in[0], t, NULL) : t;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_mish = {"Mish", 18, mish_build};

/* ---- Softsign: x / (1 + |x|). The slope by the quotient's rule would cancel for large x. ---- */
LS_GRAD_OF(softsign, LS_OP_SOFTSIGN_GRAD, ls_in)
LS_EVAL(softsign, x[0] / (1 + fabs(x[0])))
const LsOp ls_op_softsign = {
    .name = "Softsign",
    .min_in = 1,
    .max_in = 1,
    .nout = 1,
    .infer = ls_infer_map,
    .grad = softsign_grad,
    .kernel = LS_K_MAP,
    .expr = "%0 / (1 + ls_abs(%0))",
    .eval = softsign_eval,
};
const LsOp ls_op_softsign_grad = {  /* dy, x */
    .name = "softsign_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%0 / ((1 + ls_abs(%1)) * (1 + ls_abs(%1)))",
};
LS_ONNX_SIMPLE(softsign, "Softsign", 1, LS_OP_SOFTSIGN, 1)

/* ---- Elu: a (exp x - 1) below zero; Selu is a multiple of it ---- */
LS_GRAD_OF(elu, LS_OP_ELU_GRAD, ls_out)
LS_EVAL(elu, x[0] < 0 ? at->scalar.a * expm1(x[0]) : x[0])
const LsOp ls_op_elu = {            /* a >= 0, so that the result has the operand's sign */
    .name = "Elu", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map, .grad = elu_grad,
    .kernel = LS_K_MAP, .expr = "%0 < 0 ? $a * (ls_exp(%0) - 1) : %0", .eval = elu_eval,
};
const LsOp ls_op_elu_grad = {       /* dy, y */
    .name = "elu_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%1 > 0 ? %0 : %0 * (%1 + $a)",
};

static bool elu_of(LsOnnxNode *n, LsValueId out[], double alpha, double factor)
{
    LsAttr at = {.scalar = {.a = alpha < 0 ? 1 : alpha}};
    LsValueId x = n->in[0];
    out[0] = ls_append1(n->cx, n->g, LS_OP_ELU, x, &at);
    if (ls_is(out[0]) && alpha < 0) {       /* the result does not tell the piece: a choice does */
        LsValueId zero = ls_const_real(n->cx, n->g, 0),
                  above = ls_append2(n->cx, n->g, LS_OP_GREATER, x, zero, NULL);
        LsValueId low = ls_scale(n->cx, n->g, out[0], alpha);
        out[0] = ls_append3(n->cx, n->g, LS_OP_WHERE, above, x, low, NULL);
    }
    if (ls_is(out[0]))
        out[0] = ls_scale(n->cx, n->g, out[0], factor);
    return ls_is(out[0]);
}

static bool elu_build(LsOnnxNode *n, LsValueId out[])
{
    return ls_onnx_takes(n, 1, 1) && elu_of(n, out, ls_onnx_float(n, "alpha", 1), 1);
}
const LsOnnxOp ls_onnx_elu = {"Elu", 6, elu_build};

static bool selu_build(LsOnnxNode *n, LsValueId out[])
{
    return ls_onnx_takes(n, 1, 1)
        && elu_of(n, out, ls_onnx_float(n, "alpha", 1.67326319217681884765625),
                  ls_onnx_float(n, "gamma", 1.05070102214813232421875));
}
const LsOnnxOp ls_onnx_selu = {"Selu", 6, selu_build};

/* ---- Erf ---- */
LS_GRAD_OF(erf, LS_OP_ERF_GRAD, ls_in)
LS_EVAL(erf, erf(x[0]))
const LsOp ls_op_erf = {
    .name = "Erf", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map, .grad = erf_grad,
    .kernel = LS_K_MAP, .expr = "ls_erf(%0)", .eval = erf_eval,
};
const LsOp ls_op_erf_grad = {       /* dy, x: dy 2/sqrt(pi) exp(-x^2) */
    .name = "erf_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%0 * LS_R(1.1283791670955126) * ls_exp(-%1 * %1)",
};
LS_ONNX_SIMPLE(erf, "Erf", 9, LS_OP_ERF, 1)

/* ---- Gelu: x (1 + erf(x / sqrt 2)) / 2, or by tanh; 1/sqrt(2 pi) = 0.3989 ---- */
LS_GRAD_OF(gelu, LS_OP_GELU_GRAD, ls_in)
LS_EVAL(gelu, 0.5 * x[0] * (1 + erf(x[0] * 0.70710678118654752)))
const LsOp ls_op_gelu = {
    .name = "Gelu", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map, .grad = gelu_grad,
    .kernel = LS_K_MAP, .expr = "LS_R(0.5) * %0 * (1 + ls_erf(%0 * LS_R(0.70710678118654752)))",
    .eval = gelu_eval,
};
const LsOp ls_op_gelu_grad = {      /* dy, x */
    .name = "gelu_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP,
    .expr = "%0 * (LS_R(0.5) * (1 + ls_erf(%1 * LS_R(0.70710678118654752)))"
            " + %1 * LS_R(0.39894228040143268) * ls_exp(LS_R(-0.5) * %1 * %1))",
};

LS_GRAD_OF(gelu_tanh, LS_OP_GELU_TANH_GRAD, ls_in)

#define LS_GELU_TANH(x) /* tanh(sqrt(2/pi) (x + 0.044715 x^3)) */ \
    "ls_tanh(LS_R(0.79788456080286536) * " x " * (1 + LS_R(0.044715) * " x " * " x "))"
LS_EVAL(gelu_tanh,
        0.5 * x[0] * (1 + tanh(0.79788456080286536 * x[0] * (1 + 0.044715 * x[0] * x[0]))))
const LsOp ls_op_gelu_tanh = {
    .name = "gelu_tanh", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = gelu_tanh_grad, .kernel = LS_K_MAP,
    .expr = "LS_R(0.5) * %0 * (1 + " LS_GELU_TANH("%0") ")", .eval = gelu_tanh_eval,
};
const LsOp ls_op_gelu_tanh_grad = { /* dy, x */
    .name = "gelu_tanh_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP,
    .expr = "%0 * LS_R(0.5) * (1 + " LS_GELU_TANH("%1") ") * (1 + %1 * (1 - " LS_GELU_TANH("%1") ")"
            " * LS_R(0.79788456080286536) * (1 + LS_R(0.134145) * %1 * %1))",
};

static bool gelu_build(LsOnnxNode *n, LsValueId out[])
{
    const char *how = ls_onnx_string(n, "approximate", "none");
    if (strcmp(how, "none") != 0 && strcmp(how, "tanh") != 0)
        return ls_onnx_error(n, LS_E_ATTR, "it is \"none\" or \"tanh\"", "approximate is \"%s\"",
                             how);
    return ls_onnx_simple(n, out, strcmp(how, "tanh") == 0 ? LS_OP_GELU_TANH : LS_OP_GELU, 1);
}
const LsOnnxOp ls_onnx_gelu = {"Gelu", 20, gelu_build};
