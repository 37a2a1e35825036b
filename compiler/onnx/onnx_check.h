/* compiler/onnx/onnx_check.h -- checks that redundant information in a file agrees. */
#ifndef LS_COMPILER_ONNX_ONNX_CHECK_H
#define LS_COMPILER_ONNX_ONNX_CHECK_H

#include "compiler/adapters/adapters.h"
#include "compiler/onnx/onnx_model.h"

/* Checks that redundant information agrees and that floats of different types do not meet; false
 * after diagnostics. a: adapters that were added to the file; NULL: none. */
bool ls_onnx_check(LsCtx *cx, const LsOnnxModel *m, const LsAdapters *a);
/* No attribute is given twice with different values. */
bool ls_onnx_check_attributes(LsCtx *cx, LsWhere at, const Onnx__NodeProto *p);

#endif
