/* compiler/ops/scan.c -- running sums and products along an axis: CumSum, CumProd; see move.def. */
#include "compiler/ops/row.h"

static bool scan_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    LsType type = ls_type(g, ls_in(g, n, 0));
    if (type == LS_BOOL)
        return ls_error(cx, ls_where(g, n), LS_E_TYPE, "insert a Cast", "the operand is bool");
    return ls_infer_out(cx, g, n, type, ls_in_shape(g, n, 0));
}

static void cum_sum_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                         LsValueId dx[])
{
    LsAttr at = g->node[n.i].attr;
    (void)want;
    at.scan.reverse = !at.scan.reverse;
    dx[0] = ls_append1(cx, g, LS_OP_CUM_SUM, dy[0], &at);
}

const LsOp ls_op_cum_sum = {
    .name = "CumSum", .min_in = 1, .max_in = 1, .nout = 1, .infer = scan_infer,
    .grad = cum_sum_grad, .kernel = LS_K_SCAN, .layout = LS_LAY_ROW,
};

LS_GRAD_OF(cum_prod, LS_OP_CUM_PROD_GRAD, ls_in)
const LsOp ls_op_cum_prod = {
    .name = "CumProd", .min_in = 1, .max_in = 1, .nout = 1, .infer = scan_infer,
    .grad = cum_prod_grad, .kernel = LS_K_SCAN, .layout = LS_LAY_ROW,
};
const LsOp ls_op_cum_prod_grad = {      /* dy, x */
    .name = "cum_prod_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = scan_infer,
    .kernel = LS_K_SCAN, .layout = LS_LAY_ROW,
};

/* ---- ONNX: the axis is an operand of one element ---- */
static bool scan_build(LsOnnxNode *n, LsOpCode op, LsValueId out[])
{
    int64_t axis = 0;
    if (!ls_onnx_takes(n, 2, 2))
        return false;
    int got = ls_onnx_const_ints(n, 1, 1, &axis);
    if (got == -2)
        return false;
    if (got != 1)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "the axis is empty, not one number");
    int k = ls_onnx_axis(n, axis, ls_shape(n->g, n->in[0])->rank);
    if (k < 0)
        return false;
    const LsAttr at = {.scan = {.axis = k, .exclusive = ls_onnx_int(n, "exclusive", 0) != 0,
                                .reverse = ls_onnx_int(n, "reverse", 0) != 0}};
    out[0] = ls_append1(n->cx, n->g, op, n->in[0], &at);
    return ls_is(out[0]);
}

static bool cum_sum_build(LsOnnxNode *n, LsValueId out[])
{
    return scan_build(n, LS_OP_CUM_SUM, out);
}
static bool cum_prod_build(LsOnnxNode *n, LsValueId out[])
{
    return scan_build(n, LS_OP_CUM_PROD, out);
}

const LsOnnxOp ls_onnx_cum_sum = {"CumSum", 11, cum_sum_build};
const LsOnnxOp ls_onnx_cum_prod = {"CumProd", 26, cum_prod_build};
