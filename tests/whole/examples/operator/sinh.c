/* compiler/ops/sinh.c -- Sinh (opset 9): (e^x - e^-x) / 2, whose gradient is that of its parts. */
#include "compiler/ops/row.h"

static bool sinh_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1) || !ls_onnx_takes_real(n, 0))
        return false;
    LsValueId minus = ls_append1(n->cx, n->g, LS_OP_NEG, n->in[0], NULL);
    LsValueId up = ls_append1(n->cx, n->g, LS_OP_EXP, n->in[0], NULL);
    LsValueId down = ls_append1(n->cx, n->g, LS_OP_EXP, minus, NULL);
    LsValueId both = ls_append2(n->cx, n->g, LS_OP_SUB, up, down, NULL);
    out[0] = ls_append2(n->cx, n->g, LS_OP_MUL, both, ls_const_real(n->cx, n->g, 0.5), NULL);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_sinh = {"Sinh", 9, sinh_build};
