/* compiler/onnx/onnx_run_body.h -- builds the nodes of a body, once for each run of it. */
#ifndef LS_COMPILER_ONNX_ONNX_RUN_BODY_H
#define LS_COMPILER_ONNX_ONNX_RUN_BODY_H

#include "compiler/onnx/import_state.h"

typedef struct LsBody {
    LsImport *im;
    const LsOnnxFlat *f;        /* the node */
    const Onnx__GraphProto *g;
} LsBody;

/* Finds the body in that attribute and checks its numbers of operands and results (results: at
 * least). */
bool ls_body_open(LsBody *b, LsImport *im, const LsOnnxFlat *f, const char *attribute,
                  size_t operands, size_t results);
/* Appends the nodes of one run. prefix: of the names of its values; operand, result: as the body
 * lists them. */
bool ls_body_run(const LsBody *b, const char *prefix, const LsOnnxValue operand[],
                 LsOnnxValue result[]);

#endif
