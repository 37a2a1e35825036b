/* compiler/ops/peakmax.c -- Peakmax, an operator that ONNX lacks, along the last axis: 1 at the
 * first maximum, 0 elsewhere. */
#include "compiler/ops/row.h"

const LsOp ls_op_peakmax = {
    .name = "Peakmax",
    .min_in = 1,
    .max_in = 1,
    .nout = 1,
    .infer = ls_infer_like0,
    .grad = ls_grad_zero,
    .kernel = LS_K_PEAKMAX,
    .layout = LS_LAY_ROW,
};

static bool peakmax_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1) || !ls_onnx_takes_real(n, 0))
        return false;
    int rank = ls_shape(n->g, n->in[0])->rank;
    if (rank == 0 || ls_onnx_axis(n, ls_onnx_int(n, "axis", -1), rank) != rank - 1)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL, "only the last axis is handled");
    out[0] = ls_append1(n->cx, n->g, LS_OP_PEAKMAX, n->in[0], NULL);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_peakmax = {"Peakmax", 13, peakmax_build};
