/* compiler/onnx/onnx_row.c -- the table of ONNX rows, assembled from the .def files. */
#include "compiler/onnx/onnx_row.h"

#include <stdio.h>
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

extern const char ls_text_conformance_txt[];

/* Lines: "operator passed cases gradients". */
bool ls_onnx_conformance(const char *op, LsConformance *c)
{
    size_t n = strlen(op);
    for (const char *line = ls_text_conformance_txt; *line != '\0'; ) {
        if (strncmp(line, op, n) == 0 && line[n] == ' ')
            return sscanf(line + n, "%d %d %d", &c->passed, &c->cases, &c->gradients) == 3;
        const char *end = strchr(line, '\n');
        line = end != NULL ? end + 1 : "";
    }
    return false;
}
