/* compiler/ops/bump.c -- Bump, an operator that ONNX lacks: e^(-x^2), whose gradient is that of its
 * parts. */
#include "compiler/ops/row.h"

static bool bump_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1) || !ls_onnx_takes_real(n, 0))
        return false;
    LsValueId square = ls_append2(n->cx, n->g, LS_OP_MUL, n->in[0], n->in[0], NULL);
    LsValueId minus = ls_append1(n->cx, n->g, LS_OP_NEG, square, NULL);
    out[0] = ls_append1(n->cx, n->g, LS_OP_EXP, minus, NULL);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_bump = {"Bump", 9, bump_build};
