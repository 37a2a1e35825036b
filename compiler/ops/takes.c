/* compiler/ops/takes.c */
#include "compiler/ops/takes.h"

bool ls_onnx_takes_real(const LsOnnxNode *n, int k)
{
    LsValueId v = ls_onnx_in(n, k);
    if (!ls_is(v) || ls_type(n->g, v) == LS_REAL)
        return true;
    return ls_onnx_error(n, LS_E_TYPE, "insert a Cast to float", "operand %d is %s, %s takes float",
                         k, ls_type_name(ls_type(n->g, v)), n->op);
}

bool ls_onnx_takes_image(const LsOnnxNode *n)
{
    if (!ls_onnx_takes(n, 1, 1) || !ls_onnx_takes_real(n, 0))
        return false;
    if (ls_shape(n->g, n->in[0])->rank >= 3)
        return true;
    return ls_onnx_error(n, LS_E_SHAPE, NULL, "the operand is %s, %s takes N x C x spatial axes",
                         ls_dims(n->g, n->in[0]), n->op);
}
