/* compiler/onnx/onnx_found_weights.h -- weights that a file does not hold as initializers. */
#ifndef LS_COMPILER_ONNX_ONNX_FOUND_WEIGHTS_H
#define LS_COMPILER_ONNX_ONNX_FOUND_WEIGHTS_H

#include "compiler/onnx/onnx_row.h"

struct LsImport;                /* import_state.h */

/* Operand k is a weight: a constant there (Constant node, ConstantOfShape) becomes LS_V_PARAM. */
void ls_onnx_weight(LsOnnxNode *n, int k);
/* Operands of this node where a weight is expected. */
void ls_onnx_weights(LsOnnxNode *n);
/* Every state value starts from data that the evaluation form holds, so that it can be exported. */
bool ls_onnx_check_states(struct LsImport *im);
/* Inputs that turned out to be weights are none. */
void ls_onnx_drop_weight_inputs(LsGraph *g);

#endif
