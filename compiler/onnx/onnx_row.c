/* compiler/onnx/onnx_row.c -- the table of ONNX rows, assembled from the .def files. */
#include "compiler/onnx/onnx_row.h"

#include <string.h>

#define LS_IR_OP(code, row)
#define LS_ONNX_OP(row) extern const LsOnnxOp ls_onnx_##row;
#include "compiler/ir/ops.def"
#undef LS_IR_OP
#undef LS_ONNX_OP

#define LS_IR_OP(code, row)
#define LS_ONNX_OP(row) &ls_onnx_##row,
const LsOnnxOp *const ls_onnx_op[] = {
#include "compiler/ir/ops.def"
    NULL };
#undef LS_IR_OP
#undef LS_ONNX_OP

const LsOnnxOp *ls_onnx_find(const char *name)
{
    for (size_t k = 0; k < sizeof ls_onnx_op / sizeof *ls_onnx_op; k++)
        if (ls_onnx_op[k] != NULL && strcmp(ls_onnx_op[k]->name, name) == 0)
            return ls_onnx_op[k];
    return NULL;
}
