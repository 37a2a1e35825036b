/* compiler/ops/round.c -- magnitude, sign, rounding, remainders. Step functions have gradient
 * zero. */
#include "compiler/ops/row.h"

#include <math.h>

LS_GRAD_OF(abs, LS_OP_ABS_GRAD, ls_in)
LS_EVAL(abs, fabs(x[0]))
LS_EVAL_INT(abs, x[0] != INT64_MIN && (*y = x[0] < 0 ? -x[0] : x[0], true))
const LsOp ls_op_abs = {
    .name = "Abs", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map, .grad = abs_grad,
    .kernel = LS_K_MAP, .expr = "ls_abs(%0)", .eval = abs_eval, .eval_int = abs_eval_int,
};
const LsOp ls_op_abs_grad = {       /* dy, x */
    .name = "abs_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%1 > 0 ? %0 : %1 < 0 ? -%0 : 0",
};

LS_EVAL(sign, (x[0] > 0) - (x[0] < 0))
LS_EVAL_INT(sign, (*y = (x[0] > 0) - (x[0] < 0), true))
const LsOp ls_op_sign = {
    .name = "Sign", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = ls_grad_zero, .kernel = LS_K_MAP, .expr = "(%0 > 0) - (%0 < 0)", .eval = sign_eval,
    .eval_int = sign_eval_int,
};

LS_EVAL(floor, floor(x[0]))
const LsOp ls_op_floor = {
    .name = "Floor", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = ls_grad_zero, .kernel = LS_K_MAP, .expr = "ls_floor(%0)", .eval = floor_eval,
};

LS_EVAL(ceil, ceil(x[0]))
const LsOp ls_op_ceil = {
    .name = "Ceil", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = ls_grad_zero, .kernel = LS_K_MAP, .expr = "ls_ceil(%0)", .eval = ceil_eval,
};

LS_EVAL(round, nearbyint(x[0]))     /* halves to even */
const LsOp ls_op_round = {
    .name = "Round", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = ls_grad_zero, .kernel = LS_K_MAP, .expr = "ls_round(%0)", .eval = round_eval,
};

LS_ONNX_SIMPLE(abs, "Abs", 6, LS_OP_ABS, 1)
LS_ONNX_SIMPLE(sign, "Sign", 9, LS_OP_SIGN, 1)
LS_ONNX_SIMPLE(floor, "Floor", 6, LS_OP_FLOOR, 1)
LS_ONNX_SIMPLE(ceil, "Ceil", 6, LS_OP_CEIL, 1)
LS_ONNX_SIMPLE(round, "Round", 11, LS_OP_ROUND, 1)

/* ---- Mod: of integers, with the sign of the divisor (Python's) or of the dividend (C's) ---- */
static bool mod_eval_int(const int64_t x[], const LsAttr *at, int64_t *y)
{
    (void)at;
    if (x[1] == 0)
        return false;
    int64_t r = x[1] == -1 ? 0 : x[0] % x[1];
    *y = r != 0 && (r < 0) != (x[1] < 0) ? r + x[1] : r;
    return true;
}

const LsOp ls_op_mod = {
    .name = "Mod", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map, .grad = ls_grad_zero,
    .kernel = LS_K_MAP,
    .expr = "%1 == 0 || %1 == -1 ? 0 :"
            " (%0 - %0 / %1 * %1 + %1) - (%0 - %0 / %1 * %1 + %1) / %1 * %1",
    .eval_int = mod_eval_int,
};

LS_EVAL_INT(remainder, x[1] != 0 && (*y = x[1] == -1 ? 0 : x[0] % x[1], true))
const LsOp ls_op_remainder = {
    .name = "remainder",
    .min_in = 2,
    .max_in = 2,
    .nout = 1,
    .infer = ls_infer_map,
    .grad = ls_grad_zero,
    .kernel = LS_K_MAP,
    .expr = "%1 == 0 || %1 == -1 ? 0 : %0 - %0 / %1 * %1",
    .eval_int = remainder_eval_int,
};

/* ---- Mod of floats: a - q b with a whole number q, so the slopes are 1 and -q ---- */
static void mod_real_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                          const bool want[], LsValueId dx[])
{
    LsValueId a = ls_in(g, n, 0), b = ls_in(g, n, 1), y = ls_out(g, n, 0);
    if (want[0])
        dx[0] = ls_reduce_to(cx, g, dy[0], *ls_shape(g, a));
    if (want[1]) {
        LsValueId q =
            ls_append2(cx, g, LS_OP_DIV, ls_append2(cx, g, LS_OP_SUB, y, a, NULL), b, NULL);
        q = ls_append1(cx, g, LS_OP_ROUND, q, NULL);
        q = ls_append2(cx, g, LS_OP_MUL, dy[0], q, NULL);
        dx[1] = ls_reduce_to(cx, g, q, *ls_shape(g, b));
    }
}

static double floor_mod(double a, double b)
{
    double r = fmod(a, b);
    return r == 0 ? copysign(0, b) : (r < 0) != (b < 0) ? r + b : r;
}

LS_EVAL(fmod, fmod(x[0], x[1]))
const LsOp ls_op_fmod = {
    .name = "fmod",
    .min_in = 2,
    .max_in = 2,
    .nout = 1,
    .infer = ls_infer_map,
    .grad = mod_real_grad,
    .kernel = LS_K_MAP,
    .expr = "ls_fmod(%0, %1)",
    .eval = fmod_eval,
};
LS_EVAL(floor_mod, floor_mod(x[0], x[1]))
const LsOp ls_op_floor_mod = {
    .name = "floor_mod",
    .min_in = 2,
    .max_in = 2,
    .nout = 1,
    .infer = ls_infer_map,
    .grad = mod_real_grad,
    .kernel = LS_K_MAP,
    .expr = "ls_floor_mod(%0, %1)",
    .eval = floor_mod_eval,
};

static bool mod_build(LsOnnxNode *n, LsValueId out[])
{
    static const LsOpCode op[2][2] = {{LS_OP_MOD, LS_OP_REMAINDER}, {LS_OP_FLOOR_MOD, LS_OP_FMOD}};
    bool real = n->nin > 0 && ls_is(n->in[0]) && ls_type(n->g, n->in[0]) == LS_REAL;
    return ls_onnx_simple(n, out, op[real][ls_onnx_int(n, "fmod", 0) != 0], 2);
}
const LsOnnxOp ls_onnx_mod = {"Mod", 10, mod_build};
