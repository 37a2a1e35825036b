/* compiler/onnx/onnx_float.h -- a model whose reals are all float32. */
#ifndef LS_COMPILER_ONNX_ONNX_FLOAT_H
#define LS_COMPILER_ONNX_ONNX_FLOAT_H

#include "compiler/onnx/onnx_wire.h"

/* True when some initializer is a real that is not float32. */
bool ls_onnx_has_other_reals(const Onnx__ModelProto *m);
/* Turns types of inputs, outputs, values, constants and casts to float32, in place; initializers
 * are left to the caller. False after a diagnostic. */
bool ls_onnx_all_float(LsCtx *cx, Onnx__ModelProto *m);

#endif
