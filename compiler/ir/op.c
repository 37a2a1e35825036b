/* compiler/ir/op.c -- the op table, assembled from the .def files. */
#include "compiler/ir/op.h"

#define LS_IR_OP(code, row) extern const LsOp ls_op_##row;
#define LS_ONNX_OP(row)
#include "compiler/ir/ops.def"
#undef LS_IR_OP
#undef LS_ONNX_OP

static const LsOp nop = {.name = "nop"};

#define LS_IR_OP(code, row) [LS_OP_##code] = &ls_op_##row,
#define LS_ONNX_OP(row)
const LsOp *const ls_op[LS_NOPS] = { [LS_OP_NOP] = &nop,
#include "compiler/ir/ops.def"
};
#undef LS_IR_OP
#undef LS_ONNX_OP
