/* compiler/ops/softmax.c -- softmax and log-softmax along one axis; see net.def. */
#include "compiler/ops/row.h"

/* exp, the maximum, two sums, a division: about ten per element. */
static double softmax_flops(const LsGraph *g, LsNodeId n)
{
    return 10.0 * (double)ls_count(ls_in_shape(g, n, 0));
}

static void softmax_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                         LsValueId dx[])
{
    LsAttr at = g->node[n.i].attr;
    if (want[0])
        dx[0] = ls_append2(cx, g, LS_OP_SOFTMAX_GRAD, dy[0], ls_out(g, n, 0), &at);
}

static void log_softmax_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                             const bool want[], LsValueId dx[])
{
    LsAttr at = g->node[n.i].attr;
    if (want[0])
        dx[0] = ls_append2(cx, g, LS_OP_LOG_SOFTMAX_GRAD, dy[0], ls_out(g, n, 0), &at);
}

const LsOp ls_op_softmax = {
    .name = "Softmax", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_like0,
    .grad = softmax_grad, .flops = softmax_flops, .kernel = LS_K_SOFTMAX, .layout = LS_LAY_SAME,
};
const LsOp ls_op_softmax_grad = {
    .name = "softmax_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_like0,
    .flops = softmax_flops, .kernel = LS_K_SOFTMAX, .layout = LS_LAY_SAME,
};
const LsOp ls_op_log_softmax = {
    .name = "LogSoftmax", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_like0,
    .grad = log_softmax_grad, .flops = softmax_flops, .kernel = LS_K_SOFTMAX, .layout = LS_LAY_SAME,
};
const LsOp ls_op_log_softmax_grad = {
    .name = "log_softmax_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_like0,
    .flops = softmax_flops, .kernel = LS_K_SOFTMAX, .layout = LS_LAY_SAME,
};

/* Before opset 13 the operand is a matrix, split at `axis`, and its rows are normalised. */
static bool build(LsOnnxNode *n, LsOpCode op, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1) || !ls_onnx_takes_real(n, 0))
        return false;
    const LsShape s = *ls_shape(n->g, n->in[0]);
    if (s.rank == 0)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "a scalar has no axis to normalise");
    bool flatten = n->version < 13;
    int64_t given = ls_onnx_int(n, "axis", flatten ? 1 : -1);
    int axis = flatten && given == s.rank ? s.rank : ls_onnx_axis(n, given, s.rank);
    if (axis < 0)
        return false;
    if (!flatten || axis == s.rank - 1) {
        out[0] = ls_append1(n->cx, n->g, op, n->in[0], &(LsAttr){.axis = {axis}});
        return ls_is(out[0]);
    }
    LsShape flat = {2, {1, 1}};
    for (int k = 0; k < s.rank; k++)
        flat.dim[k >= axis] *= s.dim[k];
    LsValueId x = ls_reshape(n->cx, n->g, n->in[0], &flat);
    LsValueId y = ls_append1(n->cx, n->g, op, x, &(LsAttr){.axis = {1}});
    out[0] = ls_reshape(n->cx, n->g, y, &s);
    return ls_is(out[0]);
}

static bool softmax_build(LsOnnxNode *n, LsValueId out[]) { return build(n, LS_OP_SOFTMAX, out); }
static bool log_softmax_build(LsOnnxNode *n, LsValueId out[])
{
    return build(n, LS_OP_LOG_SOFTMAX, out);
}

const LsOnnxOp ls_onnx_softmax = {.name = "Softmax", .since = 1, .build = softmax_build};
const LsOnnxOp ls_onnx_log_softmax = {.name = "LogSoftmax", .since = 1, .build = log_softmax_build};
