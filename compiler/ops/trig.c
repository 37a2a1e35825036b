/* compiler/ops/trig.c -- trigonometric and hyperbolic functions and their inverses. Tanh is in
 * smooth.c.
 *
 * Each has a gradient row over dy and the operand; Tan's is over dy and the result. Slopes of
 * inverse functions are written as (1 - x)(1 + x), which does not cancel near 1. Outside its domain
 * a function is NaN, as in PyTorch. */
#include "compiler/ops/row.h"

#include <math.h>

/* The row of ONNX, the function's row, and the gradient's: `slope` of dy (%0) and of `of` (%1). */
#define TRIG(row, ROW, op_type, since, slope, of) \
    LS_GRAD_OF(row, LS_OP_##ROW##_GRAD, of) \
    LS_EVAL(row, row(x[0])) \
    const LsOp ls_op_##row = { \
        .name = op_type, .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map, \
        .grad = row##_grad, .kernel = LS_K_MAP, .expr = "ls_" #row "(%0)", .eval = row##_eval, \
    }; \
    const LsOp ls_op_##row##_grad = { \
        .name = #row "_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map, \
        .kernel = LS_K_MAP, .expr = slope, \
    }; \
    LS_ONNX_SIMPLE(row, op_type, since, LS_OP_##ROW, 1)

TRIG(sin, SIN, "Sin", 7, "%0 * ls_cos(%1)", ls_in)
TRIG(cos, COS, "Cos", 7, "-%0 * ls_sin(%1)", ls_in)
TRIG(tan, TAN, "Tan", 7, "%0 * (1 + %1 * %1)", ls_out)
TRIG(asin, ASIN, "Asin", 7, "%0 / ls_sqrt((1 - %1) * (1 + %1))", ls_in)
TRIG(acos, ACOS, "Acos", 7, "-%0 / ls_sqrt((1 - %1) * (1 + %1))", ls_in)
TRIG(atan, ATAN, "Atan", 7, "%0 / (1 + %1 * %1)", ls_in)
TRIG(sinh, SINH, "Sinh", 9, "%0 * ls_cosh(%1)", ls_in)
TRIG(cosh, COSH, "Cosh", 9, "%0 * ls_sinh(%1)", ls_in)
TRIG(asinh, ASINH, "Asinh", 9, "%0 / ls_sqrt(1 + %1 * %1)", ls_in)
TRIG(acosh, ACOSH, "Acosh", 9, "%0 / ls_sqrt((%1 - 1) * (%1 + 1))", ls_in)
TRIG(atanh, ATANH, "Atanh", 9, "%0 / ((1 - %1) * (1 + %1))", ls_in)
