/* compiler/ops/bits.c -- bits of integers: BitShift, BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot.
 * They have no gradient, as integers have none. */
#include "compiler/ops/row.h"

static bool bits_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    LsType type = ls_type(g, ls_in(g, n, 0));
    if (type != LS_I32 && type != LS_I64)
        return ls_error(cx, ls_where(g, n), LS_E_TYPE, "insert a Cast",
                        "the operand is %s, %s takes integers", ls_type_name(type),
                        ls_op[g->node[n.i].op]->name);
    return ls_infer_map(cx, g, n);
}

#define BITS(row, op_type, nin, text, value)                                                       \
    LS_EVAL_INT(row, (*y = value, true))                                                           \
    const LsOp ls_op_##row = {                                                                     \
        .name = op_type,                                                                           \
        .min_in = nin,                                                                             \
        .max_in = nin,                                                                             \
        .nout = 1,                                                                                 \
        .infer = bits_infer,                                                                       \
        .grad = ls_grad_zero,                                                                      \
        .kernel = LS_K_MAP,                                                                        \
        .expr = text,                                                                              \
        .eval_int = row##_eval_int,                                                                \
    };
BITS(bit_and, "BitwiseAnd", 2, "%0 & %1", x[0] & x[1])
BITS(bit_or, "BitwiseOr", 2, "%0 | %1", x[0] | x[1])
BITS(bit_xor, "BitwiseXor", 2, "%0 ^ %1", x[0] ^ x[1])
BITS(bit_not, "BitwiseNot", 1, "~%0", ~x[0])
/* A shift by the width or more, or by a negative number, leaves nothing, or the sign. */
BITS(shift_left, "shift_left", 2, "(uint64_t)%1 < 64 ? (int64_t)((uint64_t)%0 << (uint64_t)%1) : 0",
     (uint64_t)x[1] < 64 ? (int64_t)((uint64_t)x[0] << x[1]) : 0)
BITS(shift_right, "shift_right", 2, "(int64_t)%0 >> ((uint64_t)%1 < 63 ? (uint64_t)%1 : 63)",
     x[0] >> ((uint64_t)x[1] < 63 ? x[1] : 63))
BITS(shift_right_unsigned, "shift_right_unsigned", 2,
     "(uint64_t)%1 < 64 ? (int64_t)((uint64_t)%0 >> (uint64_t)%1) : 0",
     (uint64_t)x[1] < 64 ? (int64_t)((uint64_t)x[0] >> x[1]) : 0)

/* Before opset 28 the types are unsigned. Those below 64 bits are never negative here: the two
 * shifts agree. */
static bool bit_shift_build(LsOnnxNode *n, LsValueId out[])
{
    const char *direction = ls_onnx_string(n, "direction", "");
    bool left = strcmp(direction, "LEFT") == 0;
    if (!left && strcmp(direction, "RIGHT") != 0)
        return ls_onnx_error(n, LS_E_ATTR, "it is \"LEFT\" or \"RIGHT\"", "direction is \"%s\"",
                             direction);
    bool no_sign = n->version < 28 || ls_onnx_element(n, 0) == LS_ELEMENT_UINT64;
    return ls_onnx_simple(n, out,
                          left      ? LS_OP_SHIFT_LEFT
                          : no_sign ? LS_OP_SHIFT_RIGHT_UNSIGNED
                                    : LS_OP_SHIFT_RIGHT,
                          2);
}
const LsOnnxOp ls_onnx_bit_shift = {"BitShift", 11, bit_shift_build};

LS_ONNX_SIMPLE(bit_and, "BitwiseAnd", 18, LS_OP_BIT_AND, 2)
LS_ONNX_SIMPLE(bit_or, "BitwiseOr", 18, LS_OP_BIT_OR, 2)
LS_ONNX_SIMPLE(bit_xor, "BitwiseXor", 18, LS_OP_BIT_XOR, 2)
LS_ONNX_SIMPLE(bit_not, "BitwiseNot", 18, LS_OP_BIT_NOT, 1)
