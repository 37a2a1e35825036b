/* compiler/onnx/onnx_function_ops.h -- operators of ai.onnx that a function body defines, without a
 * row. */
#ifndef LS_COMPILER_ONNX_ONNX_FUNCTION_OPS_H
#define LS_COMPILER_ONNX_ONNX_FUNCTION_OPS_H

#include "compiler/onnx_file/onnx_wire.h"

/* The operator's body as a function, inlined like a model's own; NULL: no body is known here. */
const Onnx__FunctionProto *ls_onnx_body(LsArena *a, const char *op, int version);

/* Operator k of those that have a body, and the lowest opset of that body; NULL: no more of them.
 * An operator with several bodies comes several times. */
const char *ls_onnx_body_name(size_t k, int *since);

#endif
