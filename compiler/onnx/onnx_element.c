/* compiler/onnx/onnx_element.c -- see the header. */
#include "compiler/onnx/onnx_element.h"

#include "compiler/fold/append.h"
#include "compiler/onnx/onnx_takes.h"
#include "compiler/onnx_file/onnx_tensor.h"
#include "compiler/onnx_file/onnx_wire.h"

#include <string.h>

#define DT(code) ONNX__TENSOR_PROTO__DATA_TYPE__##code

static bool is_any(const LsOnnxNode *n, const char *const list[])
{
    while (*list != NULL && strcmp(*list, n->op) != 0)
        list++;
    return *list != NULL;
}

static const char *const casts[] = {"Cast", "CastLike", NULL};
/* Operators whose integer results may leave the range of their operands' type. */
static const char *const growing[] = {
    "Abs", "Add", "BitShift", "BitwiseNot", "CumProd",   "CumSum",          "Div", "MatMul", "Mul",
    "Neg", "Pow", "ReduceL1", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Sub", "Sum",    NULL};

/* The type that the file gives to a result, as far as attributes and operands tell. */
static int stated(const LsOnnxNode *n)
{
    const Onnx__NodeProto *p = n->proto;
    if (strcmp(n->op, "Cast") == 0)
        return (int)ls_onnx_int(n, "to", 0);
    for (size_t k = 0; p != NULL && k < p->n_attribute; k++)       /* Constant, ConstantOfShape */
        if (strcmp(ls_text(p->attribute[k]->name), "value") == 0 && p->attribute[k]->t != NULL)
            return p->attribute[k]->t->data_type;
    if (ls_onnx_has(n, "dtype"))
        return (int)ls_onnx_int(n, "dtype", 0);
    bool second = strcmp(n->op, "Where") == 0 || strcmp(n->op, "CastLike") == 0;
    return ls_onnx_element(n, second ? 1 : strcmp(n->op, "OneHot") == 0 ? 2 : 0);
}

int ls_onnx_result_element(const LsOnnxNode *n, LsValueId v)
{
    int element = stated(n);
    LsType type;
    bool own =
        element == DT(FLOAT) || element == DT(INT32) || element == DT(INT64) || element == DT(BOOL);
    return !own && ls_onnx_type(element, &type) && type == ls_type(n->g, v) ? element : 0;
}

static LsValueId with_bits(const LsOnnxNode *n, LsOpCode op, LsValueId v, int64_t bits)
{
    if (!ls_is(v))
        return v;
    LsType type = ls_type(n->g, v);
    int64_t *data = ls_arena_alloc(n->cx->arena, 1, sizeof *data);
    if (type == LS_I32)
        *(int32_t *)data = (int32_t)bits;
    else
        *data = bits;
    return ls_append2(n->cx, n->g, op, v, ls_const_add(n->cx, n->g, type, &(LsShape){0}, data),
                      NULL);
}

/* The low bits; of a signed type the highest counts negative: flipped, then subtracted. */
static LsValueId low_bits(const LsOnnxNode *n, LsValueId v, int bits, bool is_signed)
{
    v = with_bits(n, LS_OP_BIT_AND, v, (INT64_C(1) << bits) - 1);
    if (!is_signed)
        return v;
    v = with_bits(n, LS_OP_BIT_XOR, v, INT64_C(1) << (bits - 1));
    return with_bits(n, LS_OP_SUB, v, INT64_C(1) << (bits - 1));
}

LsValueId ls_onnx_cut(const LsOnnxNode *n, LsValueId v, int element)
{
    bool cast = is_any(n, casts);
    if ((cast && ls_onnx_element(n, 0) == element) || !(cast || is_any(n, growing)))
        return v;
    switch (element) {
    case DT(UINT8):    return low_bits(n, v, 8, false);
    case DT(INT8):     return low_bits(n, v, 8, true);
    case DT(UINT16):   return low_bits(n, v, 16, false);
    case DT(INT16):    return low_bits(n, v, 16, true);
    case DT(UINT32):   return low_bits(n, v, 32, false);
    case DT(FLOAT16):  return cast ? ls_append1(n->cx, n->g, LS_OP_ROUND_HALF, v, NULL) : v;
    case DT(BFLOAT16): return cast ? ls_append1(n->cx, n->g, LS_OP_ROUND_BRAIN, v, NULL) : v;
    default:           return v;
    }
}
