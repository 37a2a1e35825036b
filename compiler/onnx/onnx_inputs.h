/* compiler/onnx/onnx_inputs.h -- the inputs of a graph, with every dimension bound. */
#ifndef LS_COMPILER_ONNX_ONNX_INPUTS_H
#define LS_COMPILER_ONNX_ONNX_INPUTS_H

#include "compiler/onnx/import_state.h"

/* Graph inputs with every dimension bound: sets g->input, g->batch and the
 * values. False after diagnostics; inputs without a shape are poison. */
bool ls_onnx_bind_inputs(LsImport *im);

#endif
