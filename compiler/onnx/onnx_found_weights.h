/* compiler/onnx/onnx_found_weights.h -- weights that are not initializers of the file. */
#ifndef LS_COMPILER_ONNX_ONNX_FOUND_WEIGHTS_H
#define LS_COMPILER_ONNX_ONNX_FOUND_WEIGHTS_H

#include "compiler/onnx/onnx_row.h"

struct LsImport;                /* import_state.h */

/* Operand k is a weight: a constant operand (Constant node, ConstantOfShape) becomes LS_V_PARAM. */
void ls_onnx_weight(LsOnnxNode *n, int k);
/* Does the same for the node's operands that are weights by its definition. */
void ls_onnx_weights(LsOnnxNode *n);
/* Checks that every state value starts from data that the evaluation form holds, so that it can be
 * exported. */
bool ls_onnx_check_states(struct LsImport *im);
/* Removes inputs that turned out to be weights. */
void ls_onnx_drop_weight_inputs(LsGraph *g);

#endif
