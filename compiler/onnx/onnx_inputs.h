/* compiler/onnx/onnx_inputs.h -- binds the dimensions of a graph's inputs. */
#ifndef LS_COMPILER_ONNX_ONNX_INPUTS_H
#define LS_COMPILER_ONNX_ONNX_INPUTS_H

#include "compiler/onnx/import_state.h"

/* Binds every dimension of the graph inputs: sets g->input, g->batch and the values. False after
 * diagnostics; inputs without a shape are poison. */
bool ls_onnx_bind_inputs(LsImport *im);

#endif
