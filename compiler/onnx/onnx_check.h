/* compiler/onnx/onnx_check.h -- what a file says twice must agree. */
#ifndef LS_COMPILER_ONNX_ONNX_CHECK_H
#define LS_COMPILER_ONNX_ONNX_CHECK_H

#include "compiler/onnx/onnx_model.h"

/* What the file says twice agrees, and floats of different types do not meet; false after diagnostics. */
bool ls_onnx_check(LsCtx *cx, const LsOnnxModel *m);

#endif
