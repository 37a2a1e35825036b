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

LS_EVAL(remainder, fmod(x[0], x[1]))
LS_EVAL_INT(remainder, x[1] != 0 && (*y = x[1] == -1 ? 0 : x[0] % x[1], true))
const LsOp ls_op_remainder = {
    .name = "remainder", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%1 == 0 || %1 == -1 ? 0 : %0 - %0 / %1 * %1",
    .eval = remainder_eval, .eval_int = remainder_eval_int,
};

static bool mod_build(LsOnnxNode *n, LsValueId out[])
{
    bool fmod = ls_onnx_int(n, "fmod", 0) != 0;
    if (!ls_onnx_simple(n, out, fmod ? LS_OP_REMAINDER : LS_OP_MOD, 2))
        return false;
    if (ls_type(n->g, out[0]) == LS_REAL && !ls_is_const(n->g, out[0]))
        return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL,
                             "the remainder of floats is supported for constants only");
    return true;
}
const LsOnnxOp ls_onnx_mod = {"Mod", 10, mod_build};
