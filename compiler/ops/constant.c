/* compiler/ops/constant.c -- Constant, in all its forms. */
#include "compiler/ir/graph.h"
#include "compiler/onnx/onnx_attr.h"
#include "compiler/onnx/onnx_row.h"

static LsValueId add(LsOnnxNode *n, LsType type, LsShape shape, const void *data)
{
    return ls_const_add(n->cx, n->g, type, &shape, data);
}

static LsValueId int_list(LsOnnxNode *n)
{
    int room = ls_onnx_length(n, "value_ints");
    int64_t *data = ls_arena_alloc(n->cx->arena, (size_t)room + 1, sizeof *data);
    int count = ls_onnx_ints(n, "value_ints", room, data);
    return count < 0 ? (LsValueId){0} : add(n, LS_I64, (LsShape){1, {count}}, data);
}

static LsValueId float_list(LsOnnxNode *n)
{
    int room = ls_onnx_length(n, "value_floats");
    double *list = ls_arena_alloc(n->cx->arena, (size_t)room + 1, sizeof *list);
    float *data = ls_arena_alloc(n->cx->arena, (size_t)room + 1, sizeof *data);
    int count = ls_onnx_floats(n, "value_floats", room, list);
    if (count < 0)
        return (LsValueId){0};
    for (int i = 0; i < count; i++)
        data[i] = (float)list[i];
    return add(n, LS_REAL, (LsShape){1, {count}}, data);
}

static bool build(LsOnnxNode *n, LsValueId out[])
{
    if (ls_onnx_has(n, "value")) {
        out[0] = ls_onnx_tensor(n, "value");
    } else if (ls_onnx_has(n, "value_float")) {
        out[0] = ls_const_real(n->cx, n->g, ls_onnx_float(n, "value_float", 0));
    } else if (ls_onnx_has(n, "value_int")) {
        int64_t *v = ls_arena_alloc(n->cx->arena, 1, sizeof *v);
        *v = ls_onnx_int(n, "value_int", 0);
        out[0] = add(n, LS_I64, (LsShape){0}, v);
    } else if (ls_onnx_has(n, "value_ints")) {
        out[0] = int_list(n);
    } else if (ls_onnx_has(n, "value_floats")) {
        out[0] = float_list(n);
    } else if (ls_onnx_has(n, "value_string") || ls_onnx_has(n, "value_strings")) {
        return ls_onnx_error(n, LS_E_TYPE, NULL, "string constants are not supported");
    } else if (ls_onnx_has(n, "sparse_value")) {
        return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL, "sparse constants are not supported");
    } else {
        return ls_onnx_error(n, LS_E_ATTR, NULL, "a Constant needs one of value, value_float(s), "
                             "value_int(s)");
    }
    return ls_is(out[0]);
}

const LsOnnxOp ls_onnx_constant = {.name = "Constant", .since = 1, .build = build};
