/* compiler/onnx/onnx_element.h -- element types of the file that have no IR type of their own.
 *
 * Integers below 32 bits are LS_I32, unsigned ones of 32 and 64 bits LS_I64, every float is
 * LS_REAL. The importer remembers the file's type of each value and cuts results to its width:
 * integers wrap around after an operator that may leave the range, floats are rounded where a Cast
 * turns them into 16 bits. Other 16-bit operators compute in full precision. */
#ifndef LS_COMPILER_ONNX_ONNX_ELEMENT_H
#define LS_COMPILER_ONNX_ONNX_ELEMENT_H

#include "compiler/onnx/onnx_row.h"

/* The element type (TensorProto.DataType) of the node's result v; 0: that of its IR type. */
int ls_onnx_result_element(const LsOnnxNode *n, LsValueId v);
/* The node's result v cut to that type, where the operator needs it; else v. None after a
 * diagnostic. */
LsValueId ls_onnx_cut(const LsOnnxNode *n, LsValueId v, int element);

#endif
