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
