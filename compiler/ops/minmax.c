/* compiler/ops/minmax.c -- minimum, maximum, clipping. A NaN in an operand gives a NaN in the
 * result. */
#include "compiler/ops/row.h"

#include <math.h>

/* Gradient for the selected operand; on a tie each operand gets half, as in PyTorch. */
static void extreme_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                         LsValueId dx[])
{
    bool max = g->node[n.i].op == LS_OP_MAX;
    LsValueId x[2] = {ls_in(g, n, 0), ls_in(g, n, 1)};
    for (int k = 0; k < 2; k++)
        if (want[k]) {
            LsValueId high = max ? x[k] : x[1 - k], low = max ? x[1 - k] : x[k];
            LsValueId part = ls_append3(cx, g, LS_OP_GREATER_GRAD, dy[0], high, low, NULL);
            dx[k] = ls_reduce_to(cx, g, part, *ls_shape(g, x[k]));
        }
}

LS_EVAL(max, x[0] > x[1] || isnan(x[0]) ? x[0] : x[1])
LS_EVAL_INT(max, (*y = x[0] > x[1] ? x[0] : x[1], true))
const LsOp ls_op_max = {
    .name = "Max", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map, .grad = extreme_grad,
    .kernel = LS_K_MAP, .expr = "ls_max(%0, %1)",
    .eval = max_eval, .eval_int = max_eval_int,
};

LS_EVAL(min, x[0] < x[1] || isnan(x[0]) ? x[0] : x[1])
LS_EVAL_INT(min, (*y = x[0] < x[1] ? x[0] : x[1], true))
const LsOp ls_op_min = {
    .name = "Min", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map, .grad = extreme_grad,
    .kernel = LS_K_MAP, .expr = "ls_min(%0, %1)",
    .eval = min_eval, .eval_int = min_eval_int,
};

const LsOp ls_op_greater_grad = {   /* dy, a, b: dy where a > b, half of it where a = b */
    .name = "greater_grad", .min_in = 3, .max_in = 3, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%1 > %2 ? %0 : %1 == %2 ? LS_R(0.5) * %0 : 0",
};

static bool extreme_build(LsOnnxNode *n, LsValueId out[], LsOpCode op)
{
    if (!ls_onnx_takes(n, n->nin > 1 ? n->nin : 1, INT32_MAX))
        return false;
    out[0] = n->in[0];
    for (int k = 1; k < n->nin && ls_is(out[0]); k++)
        out[0] = ls_append2(n->cx, n->g, op, out[0], n->in[k], NULL);
    return ls_is(out[0]);
}

static bool max_build(LsOnnxNode *n, LsValueId out[]) { return extreme_build(n, out, LS_OP_MAX); }
static bool min_build(LsOnnxNode *n, LsValueId out[]) { return extreme_build(n, out, LS_OP_MIN); }
const LsOnnxOp ls_onnx_max = {"Max", 6, max_build};
const LsOnnxOp ls_onnx_min = {"Min", 6, min_build};

/* ---- Clip ---- */
static void clip_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                      LsValueId dx[])
{
    (void)want;         /* strictly inside, so the result decides: relu6 keeps no operand */
    LsAttr at = g->node[n.i].attr;
    dx[0] = ls_append2(cx, g, LS_OP_CLIP_GRAD, dy[0], ls_out(g, n, 0), &at);
}

static double clip_eval(const double x[], const LsAttr *at)
{
    double y = x[0] < at->scalar.a ? at->scalar.a : x[0];
    return y > at->scalar.b ? at->scalar.b : y;
}

const LsOp ls_op_clip = {           /* to a .. b, each may be infinite; b takes precedence if a >
                                     * b */
    .name = "Clip", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map, .grad = clip_grad,
    .kernel = LS_K_MAP, .expr = "ls_min(ls_max(%0, $a), $b)", .eval = clip_eval,
};
const LsOp ls_op_clip_grad = {      /* dy, y */
    .name = "clip_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%1 > $a && %1 < $b ? %0 : 0",
};

/* Integers are clipped by Min and Max, which are exact. */
static bool clip_ints(LsOnnxNode *n, LsValueId out[])
{
    static const LsOpCode op[] = {0, LS_OP_MAX, LS_OP_MIN};
    out[0] = n->in[0];
    for (int k = 1; k < n->nin && ls_is(out[0]); k++)
        if (ls_is(n->in[k]))
            out[0] = ls_append2(n->cx, n->g, op[k], out[0], n->in[k], NULL);
    return ls_is(out[0]);
}

static bool is_known(const LsOnnxNode *n, int k)
{
    return !ls_is(ls_onnx_in(n, k)) || n->g->value[n->in[k].i].kind == LS_V_CONST;
}

/* A bound that is trained or computed: where the operand lies beyond it, the bound is the result
 * and gets the gradient; at the bound the operand gets it, as in PyTorch's clamp. */
static bool clip_by_values(LsOnnxNode *n, LsValueId out[])
{
    static const LsOpCode beyond[] = {LS_OP_NOP, LS_OP_LESS, LS_OP_GREATER};
    out[0] = n->in[0];
    for (int k = 1; k < n->nin && ls_is(out[0]); k++) {
        if (!ls_is(n->in[k]))
            continue;
        LsValueId bound = ls_reshape(n->cx, n->g, n->in[k], &(LsShape){0});
        LsValueId over =
            ls_is(bound) ? ls_append2(n->cx, n->g, beyond[k], out[0], bound, NULL) : bound;
        out[0] =
            ls_is(over) ? ls_append3(n->cx, n->g, LS_OP_WHERE, over, bound, out[0], NULL) : over;
    }
    return ls_is(out[0]);
}

static bool clip_bound_is_one_number(const LsOnnxNode *n, int k)
{
    if (!ls_is(ls_onnx_in(n, k)) || ls_count(ls_shape(n->g, n->in[k])) == 1)
        return true;
    return ls_onnx_error(n, LS_E_SHAPE, NULL, "operand %d is %s, a bound is one number", k,
                         ls_dims(n->g, n->in[k]));
}

static bool clip_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, n->version < 11 ? 1 : 3))
        return false;
    if (ls_type(n->g, n->in[0]) != LS_REAL)
        return clip_ints(n, out);
    double lo = -INFINITY, hi = INFINITY;
    if (n->version >= 11 && !(is_known(n, 1) && is_known(n, 2)))
        return clip_bound_is_one_number(n, 1) && clip_bound_is_one_number(n, 2)
            && ls_onnx_takes_real(n, 1) && ls_onnx_takes_real(n, 2) && clip_by_values(n, out);
    if (n->version < 11) {
        lo = ls_onnx_float(n, "min", lo);
        hi = ls_onnx_float(n, "max", hi);
    } else if (ls_onnx_const_reals(n, 1, 1, &lo) == -2 || ls_onnx_const_reals(n, 2, 1, &hi) == -2) {
        return false;
    }
    bool relu = lo == 0 && hi == INFINITY;
    LsAttr at = {.scalar = {.a = lo, .b = hi}};
    out[0] = ls_append1(n->cx, n->g, relu ? LS_OP_RELU : LS_OP_CLIP, n->in[0], relu ? NULL : &at);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_clip = {"Clip", 6, clip_build};
