/* compiler/onnx/onnx_outputs.h -- the outputs of a graph. */
#ifndef LS_COMPILER_ONNX_ONNX_OUTPUTS_H
#define LS_COMPILER_ONNX_ONNX_OUTPUTS_H

#include "compiler/onnx/import_state.h"

/* Sets g->output; false after diagnostics. */
bool ls_onnx_add_outputs(LsImport *im);
/* A shape of the file as "Nx3x?"; NULL: any shape. */
const char *ls_onnx_declared_text(LsArena *a, const Onnx__TensorShapeProto *s);

#endif
