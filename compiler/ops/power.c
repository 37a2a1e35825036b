/* compiler/ops/power.c -- powers, roots, exponentials, logarithms, reciprocals. */
#include "compiler/ops/row.h"

#include <math.h>

/* ---- Exp, Log ---- */
LS_GRAD_OF(exp, LS_OP_MUL, ls_out)
LS_EVAL(exp, exp(x[0]))
const LsOp ls_op_exp = {
    .name = "Exp", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map, .grad = exp_grad,
    .kernel = LS_K_MAP, .expr = "ls_exp(%0)", .eval = exp_eval,
};
LS_ONNX_SIMPLE(exp, "Exp", 6, LS_OP_EXP, 1)

LS_GRAD_OF(log, LS_OP_DIV, ls_in)
LS_EVAL(log, log(x[0]))
const LsOp ls_op_log = {
    .name = "Log", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map, .grad = log_grad,
    .kernel = LS_K_MAP, .expr = "ls_log(%0)", .eval = log_eval,
};
LS_ONNX_SIMPLE(log, "Log", 6, LS_OP_LOG, 1)

/* ---- roots of sums of powers: norms ----
 * At a zero vector the chain rule gives infinity times zero. The gradient of a norm is 0 there, as
 * in PyTorch, in whatever form the file has the norm. */
enum { MOST_VISITS = 64 };      /* most values visited for one root */

static bool is_positive(const LsGraph *g, LsValueId v)
{
    return ls_is_const(g, v) && g->value[v.i].data != NULL && ls_count(ls_shape(g, v)) == 1
        && ls_const_at(g, v, 0) > 0;
}

/* x^p with a constant p > 1 that is never negative. */
static bool is_even_power(const LsGraph *g, LsNodeId pow)
{
    LsNodeId base = g->value[ls_in(g, pow, 0).i].def;
    LsValueId exponent = ls_in(g, pow, 1);
    double p = is_positive(g, exponent) ? ls_const_at(g, exponent, 0) : 0;
    return p > 1 && (fmod(p, 2) == 0 || g->node[base.i].op == LS_OP_ABS);
}

/* v is a sum of terms that are never negative and have slope 0 where they are 0. */
static bool is_power_sum(const LsGraph *g, LsValueId v, int *visits)
{
    LsNodeId def = g->value[v.i].def;
    LsValueId a = ls_in(g, def, 0), b = ls_in(g, def, 1);
    if (def.i == 0 || ++*visits > MOST_VISITS)
        return false;
    switch (g->node[def.i].op) {
    case LS_OP_REDUCE_SUM_SQUARE: case LS_OP_NORM_VAR:
        return true;
    case LS_OP_POW:
        return is_even_power(g, def);
    case LS_OP_REDUCE_SUM: case LS_OP_REDUCE_MEAN: case LS_OP_RESHAPE: case LS_OP_TRANSPOSE:
    case LS_OP_EXPAND: case LS_OP_AVERAGE_POOL:
        return is_power_sum(g, a, visits);
    case LS_OP_MUL:
        return a.i == b.i || (is_positive(g, a) && is_power_sum(g, b, visits))
            || (is_positive(g, b) && is_power_sum(g, a, visits));
    case LS_OP_DIV:
        return is_positive(g, b) && is_power_sum(g, a, visits);
    case LS_OP_ADD:
        return is_power_sum(g, a, visits) && is_power_sum(g, b, visits);
    default:
        return false;
    }
}

/* The gradient d of a root of x; 0 for a norm where `zero` shows that x is 0. */
static LsValueId root_grad(LsCtx *cx, LsGraph *g, LsValueId x, LsValueId zero, LsValueId d)
{
    int visits = 0;
    if (!is_power_sum(g, x, &visits))
        return d;
    LsValueId none = ls_const_real(cx, g, 0), at = ls_append2(cx, g, LS_OP_EQUAL, zero, none, NULL);
    return ls_append3(cx, g, LS_OP_WHERE, at, none, d, NULL);
}

/* ---- Sqrt, Reciprocal ---- */
static void sqrt_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                      LsValueId dx[])
{
    (void)want;
    LsValueId x = ls_in(g, n, 0), y = ls_out(g, n, 0);
    dx[0] = root_grad(cx, g, x, y, ls_append2(cx, g, LS_OP_SQRT_GRAD, dy[0], y, NULL));
}

LS_EVAL(sqrt, sqrt(x[0]))
const LsOp ls_op_sqrt = {
    .name = "Sqrt", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map, .grad = sqrt_grad,
    .kernel = LS_K_MAP, .expr = "ls_sqrt(%0)", .eval = sqrt_eval,
};
const LsOp ls_op_sqrt_grad = {      /* dy, y */
    .name = "sqrt_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "LS_R(0.5) * %0 / %1",
};
LS_ONNX_SIMPLE(sqrt, "Sqrt", 6, LS_OP_SQRT, 1)

LS_GRAD_OF(reciprocal, LS_OP_RECIPROCAL_GRAD, ls_out)
LS_EVAL(reciprocal, 1 / x[0])
const LsOp ls_op_reciprocal = {
    .name = "Reciprocal", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = reciprocal_grad, .kernel = LS_K_MAP, .expr = "1 / %0", .eval = reciprocal_eval,
};
const LsOp ls_op_reciprocal_grad = {    /* dy, y */
    .name = "reciprocal_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "-%0 * %1 * %1",
};
LS_ONNX_SIMPLE(reciprocal, "Reciprocal", 6, LS_OP_RECIPROCAL, 1)

/* ---- Pow ---- */
static void pow_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                     LsValueId dx[])
{
    LsValueId x = ls_in(g, n, 0), p = ls_in(g, n, 1), y = ls_out(g, n, 0);
    if (want[0]) {
        LsValueId d = ls_append3(cx, g, LS_OP_POW_GRAD, dy[0], x, p, NULL);
        bool root = is_positive(g, p) && ls_const_at(g, p, 0) < 1;
        d = root ? root_grad(cx, g, x, x, d) : d;
        dx[0] = ls_reduce_to(cx, g, d, *ls_shape(g, x));
    }
    if (want[1]) {
        LsValueId d = ls_append3(cx, g, LS_OP_POW_GRAD_EXPONENT, dy[0], y, x, NULL);
        dx[1] = ls_reduce_to(cx, g, d, *ls_shape(g, p));
    }
}

/* By squaring; with a negative exponent the result would be no integer. */
static bool pow_eval_int(const int64_t x[], const LsAttr *at, int64_t *y)
{
    (void)at;
    int64_t base = x[0];
    *y = 1;
    if (x[1] < 0)
        return false;
    for (int64_t p = x[1]; p > 0; p >>= 1) {
        if ((p & 1) && __builtin_mul_overflow(*y, base, y))
            return false;
        if (p > 1 && __builtin_mul_overflow(base, base, &base))
            return false;
    }
    return true;
}

LS_EVAL(pow, pow(x[0], x[1]))
const LsOp ls_op_pow = {
    .name = "Pow", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map, .grad = pow_grad,
    .kernel = LS_K_MAP, .expr = "ls_pow(%0, %1)", .eval = pow_eval, .eval_int = pow_eval_int,
};
const LsOp ls_op_pow_grad = {       /* dy, x, p: dy p x^(p - 1) */
    .name = "pow_grad", .min_in = 3, .max_in = 3, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%2 == 0 ? 0 : %0 * %2 * ls_pow(%1, %2 - 1)",
};
/* dy, y, x: dy y log x; 0 at x = 0, except where y is infinite (a negative exponent). */
const LsOp ls_op_pow_grad_exponent = {
    .name = "pow_grad_exponent", .min_in = 3, .max_in = 3, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%2 == 0 && %1 <= 1 ? 0 : %0 * %1 * ls_log(%2)",
};

/* Small known exponents become products and roots: cheaper, and the layer norm pattern expects a
 * square. */
static bool pow_known(LsOnnxNode *n, LsValueId out[], double p)
{
    LsValueId x = n->in[0];
    if (p == 1)
        out[0] = x;
    else if (p == 2 || p == 3)
        out[0] = ls_append2(n->cx, n->g, LS_OP_MUL, x, x, NULL);
    else if (p == 0.5)
        out[0] = ls_append1(n->cx, n->g, LS_OP_SQRT, x, NULL);
    else if (p == -1)
        out[0] = ls_append1(n->cx, n->g, LS_OP_RECIPROCAL, x, NULL);
    if (p == 3 && ls_is(out[0]))
        out[0] = ls_append2(n->cx, n->g, LS_OP_MUL, out[0], x, NULL);
    return ls_is(out[0]);
}

/* From opset 12 the exponent may have another type than the base; the result has the base's
 * type. */
static bool pow_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 2, 2))
        return false;
    LsGraph *g = n->g;
    LsValueId x = n->in[0], p = n->in[1];
    LsType type = ls_type(g, x);
    if (ls_is_const(g, p) && g->value[p.i].data != NULL && ls_count(ls_shape(g, p)) == 1
        && ls_shape(g, p)->rank <= ls_shape(g, x)->rank && type == LS_REAL
        && pow_known(n, out, ls_const_at(g, p, 0)))
        return true;
    LsType work = type == LS_REAL || ls_type(g, p) == LS_REAL ? LS_REAL : type;
    if (ls_type(g, p) != work)
        p = ls_append1(n->cx, g, LS_OP_CAST, p, &(LsAttr){.cast = work});
    if (type != work)
        x = ls_append1(n->cx, g, LS_OP_CAST, x, &(LsAttr){.cast = work});
    out[0] = ls_append2(n->cx, g, LS_OP_POW, x, p, NULL);
    if (ls_is(out[0]) && type != work)
        out[0] = ls_append1(n->cx, g, LS_OP_CAST, out[0], &(LsAttr){.cast = type});
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_pow = {"Pow", 7, pow_build};
