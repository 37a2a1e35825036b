/* compiler/ops/compare.c -- comparisons, logic, selection. Bools are 0 or 1. */
#include "compiler/ops/row.h"

#include <math.h>

LS_EVAL(equal, x[0] == x[1])
LS_EVAL_INT(equal, (*y = x[0] == x[1], true))
const LsOp ls_op_equal = {
    .name = "Equal", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .type = ls_infer_bool, .grad = ls_grad_zero, .kernel = LS_K_MAP, .expr = "%0 == %1",
    .eval = equal_eval, .eval_int = equal_eval_int,
};

LS_EVAL(greater, x[0] > x[1])
LS_EVAL_INT(greater, (*y = x[0] > x[1], true))
const LsOp ls_op_greater = {
    .name = "Greater", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .type = ls_infer_bool, .grad = ls_grad_zero, .kernel = LS_K_MAP, .expr = "%0 > %1",
    .eval = greater_eval, .eval_int = greater_eval_int,
};

LS_EVAL(less, x[0] < x[1])
LS_EVAL_INT(less, (*y = x[0] < x[1], true))
const LsOp ls_op_less = {
    .name = "Less", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .type = ls_infer_bool, .grad = ls_grad_zero, .kernel = LS_K_MAP, .expr = "%0 < %1",
    .eval = less_eval, .eval_int = less_eval_int,
};

LS_EVAL(greater_equal, x[0] >= x[1])
LS_EVAL_INT(greater_equal, (*y = x[0] >= x[1], true))
const LsOp ls_op_greater_equal = {
    .name = "GreaterOrEqual", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .type = ls_infer_bool, .grad = ls_grad_zero, .kernel = LS_K_MAP, .expr = "%0 >= %1",
    .eval = greater_equal_eval, .eval_int = greater_equal_eval_int,
};

LS_EVAL(less_equal, x[0] <= x[1])
LS_EVAL_INT(less_equal, (*y = x[0] <= x[1], true))
const LsOp ls_op_less_equal = {
    .name = "LessOrEqual", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .type = ls_infer_bool, .grad = ls_grad_zero, .kernel = LS_K_MAP, .expr = "%0 <= %1",
    .eval = less_equal_eval, .eval_int = less_equal_eval_int,
};

LS_ONNX_SIMPLE(equal, "Equal", 7, LS_OP_EQUAL, 2)
LS_ONNX_SIMPLE(greater, "Greater", 7, LS_OP_GREATER, 2)
LS_ONNX_SIMPLE(less, "Less", 7, LS_OP_LESS, 2)
LS_ONNX_SIMPLE(greater_equal, "GreaterOrEqual", 12, LS_OP_GREATER_EQUAL, 2)
LS_ONNX_SIMPLE(less_equal, "LessOrEqual", 12, LS_OP_LESS_EQUAL, 2)

static bool is_nan_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1) || !ls_onnx_takes_real(n, 0))
        return false;
    LsValueId same = ls_append2(n->cx, n->g, LS_OP_EQUAL, n->in[0], n->in[0], NULL);
    out[0] = ls_is(same) ? ls_append1(n->cx, n->g, LS_OP_NOT, same, NULL) : same;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_is_nan = {"IsNaN", 9, is_nan_build};

/* Either infinity can be left out; without both the answer is false, which "x < -inf" says too. */
static bool is_inf_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1) || !ls_onnx_takes_real(n, 0))
        return false;
    bool low = ls_onnx_int(n, "detect_negative", 1) != 0,
         high = ls_onnx_int(n, "detect_positive", 1) != 0;
    LsValueId x = low && high ? ls_append1(n->cx, n->g, LS_OP_ABS, n->in[0], NULL) : n->in[0];
    LsValueId edge = ls_const_real(n->cx, n->g, high ? INFINITY : -INFINITY);
    if (ls_is(x))
        out[0] = ls_append2(n->cx, n->g, low || high ? LS_OP_EQUAL : LS_OP_LESS, x, edge, NULL);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_is_inf = {"IsInf", 10, is_inf_build};

/* ---- logic ---- */
static bool logic_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    for (int k = 0; k < g->node[n.i].nin; k++)
        if (ls_type(g, ls_in(g, n, k)) != LS_BOOL)
            return ls_error(cx, ls_where(g, n), LS_E_TYPE, NULL, "operand %d is %s, %s takes bool",
                            k, ls_type_name(ls_type(g, ls_in(g, n, k))),
                            ls_op[g->node[n.i].op]->name);
    return ls_infer_map(cx, g, n);
}

LS_EVAL_INT(not, (*y = !x[0], true))
const LsOp ls_op_not = {
    .name = "Not", .min_in = 1, .max_in = 1, .nout = 1, .infer = logic_infer, .grad = ls_grad_zero,
    .kernel = LS_K_MAP, .expr = "!%0", .eval_int = not_eval_int,
};

LS_EVAL_INT(and, (*y = x[0] && x[1], true))
const LsOp ls_op_and = {
    .name = "And", .min_in = 2, .max_in = 2, .nout = 1, .infer = logic_infer, .grad = ls_grad_zero,
    .kernel = LS_K_MAP, .expr = "%0 && %1", .eval_int = and_eval_int,
};

LS_EVAL_INT(or, (*y = x[0] || x[1], true))
const LsOp ls_op_or = {
    .name = "Or", .min_in = 2, .max_in = 2, .nout = 1, .infer = logic_infer, .grad = ls_grad_zero,
    .kernel = LS_K_MAP, .expr = "%0 || %1", .eval_int = or_eval_int,
};

LS_EVAL_INT(xor, (*y = x[0] != x[1], true))
const LsOp ls_op_xor = {
    .name = "Xor", .min_in = 2, .max_in = 2, .nout = 1, .infer = logic_infer, .grad = ls_grad_zero,
    .kernel = LS_K_MAP, .expr = "%0 != %1", .eval_int = xor_eval_int,
};

LS_ONNX_SIMPLE(not, "Not", 1, LS_OP_NOT, 1)
LS_ONNX_SIMPLE(and, "And", 7, LS_OP_AND, 2)
LS_ONNX_SIMPLE(or, "Or", 7, LS_OP_OR, 2)
LS_ONNX_SIMPLE(xor, "Xor", 7, LS_OP_XOR, 2)

/* ---- Where ---- */
static bool where_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    if (ls_type(g, ls_in(g, n, 0)) != LS_BOOL)
        return ls_error(cx, ls_where(g, n), LS_E_TYPE, NULL, "the condition is %s, not bool",
                        ls_type_name(ls_type(g, ls_in(g, n, 0))));
    return ls_infer_map_from(cx, g, n, 1);
}

static LsType where_type(const LsGraph *g, LsNodeId n)
{
    return ls_type(g, ls_in(g, n, 1));
}

static void where_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                       LsValueId dx[])
{
    LsValueId c = ls_in(g, n, 0);
    for (int k = 1; k < 3; k++)
        if (want[k]) {
            LsValueId zero = ls_const_real(cx, g, 0);
            LsValueId part = ls_append3(cx, g, LS_OP_WHERE, c, k == 1 ? dy[0] : zero,
                                        k == 1 ? zero : dy[0], NULL);
            dx[k] = ls_reduce_to(cx, g, part, *ls_in_shape(g, n, k));
        }
}

LS_EVAL(where, x[0] != 0 ? x[1] : x[2])
LS_EVAL_INT(where, (*y = x[0] ? x[1] : x[2], true))
const LsOp ls_op_where = {          /* condition, X, Y */
    .name = "Where", .min_in = 3, .max_in = 3, .nout = 1, .infer = where_infer, .type = where_type,
    .grad = where_grad, .kernel = LS_K_MAP, .expr = "%0 ? %1 : %2",
    .eval = where_eval, .eval_int = where_eval_int,
};
LS_ONNX_SIMPLE(where, "Where", 9, LS_OP_WHERE, 3)
