/* compiler/onnx/onnx_takes.c -- see the header. */
#include "compiler/onnx/onnx_takes.h"

#include "compiler/onnx_file/onnx_metadata.h"
#include "compiler/onnx_file/onnx_wire.h"

#include <stdlib.h>
#include <string.h>

static const char broken_node[] =
    "the file is against ONNX's definition of the operator: onnx.checker.check_model tells more";

bool ls_onnx_takes(const LsOnnxNode *n, int min, int max)
{
    if (n->nin < min || n->nin > max)
        return ls_onnx_error(n, LS_E_PARSE, broken_node, "the node has %d operand%s, %s takes %s%d",
                             n->nin, n->nin == 1 ? "" : "s", n->op,
                             n->nin < min ? "at least " : "at most ", n->nin < min ? min : max);
    for (int k = 0; k < min; k++)
        if (!ls_is(n->in[k]))
            return ls_onnx_error(n, LS_E_PARSE, broken_node, "operand %d is left out, %s needs it",
                                 k, n->op);
    return true;
}

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

int64_t ls_onnx_padding_row(const LsOnnxNode *n)
{
    const Onnx__NodeProto *p = n->proto;
    const char *call = p != NULL ? ls_onnx_meta(n->cx->arena, &p->base, LS_META_CALL) : NULL;
    if (call == NULL || strstr(call, "aten.embedding.default") == NULL)
        return -1;
    const char *row = ls_meta_argument(n->cx->arena, call, 2);      /* -1, or the table's row */
    return row != NULL ? strtoll(row, NULL, 10) : -1;
}
