/* compiler/onnx_file/onnx_widen.h -- converts a model to float32 throughout. */
#ifndef LS_COMPILER_ONNX_FILE_ONNX_WIDEN_H
#define LS_COMPILER_ONNX_FILE_ONNX_WIDEN_H

#include "compiler/onnx_file/onnx_wire.h"

/* True when some initializer is a real that is not float32. */
bool ls_onnx_has_other_reals(const Onnx__ModelProto *m);
/* Converts types of inputs, outputs, values and constants to float32, in place, and casts but those
 * to 16 bits, which round; the caller converts initializers. False after a diagnostic. */
bool ls_onnx_all_float(LsCtx *cx, Onnx__ModelProto *m);

#endif
