/* compiler/ops/optional.c -- Optional, OptionalGetElement, OptionalHasElement over tensors: whether
 * a value is there is known at compile time. */
#include "compiler/ops/row.h"

static bool same_build(LsOnnxNode *n, LsValueId out[])
{
    if (n->nin == 0)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL,
                             "an optional value without an element is not supported");
    if (!ls_onnx_takes(n, 1, 1))
        return false;
    out[0] = n->in[0];
    return true;
}
const LsOnnxOp ls_onnx_optional = {"Optional", 15, same_build};
const LsOnnxOp ls_onnx_optional_get_element = {"OptionalGetElement", 15, same_build};

static bool has_build(LsOnnxNode *n, LsValueId out[])
{
    uint8_t *has = ls_arena_alloc(n->cx->arena, 1, 1);
    *has = n->nin > 0 && ls_is(n->in[0]);
    out[0] = ls_const_add(n->cx, n->g, LS_BOOL, &(LsShape){0}, has);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_optional_has_element = {"OptionalHasElement", 15, has_build};
