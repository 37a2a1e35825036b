/* compiler/ops/fused_onnx.h -- shared by the rows of the domain com.microsoft, and rows that they
 * call. */
#ifndef LS_COMPILER_OPS_FUSED_ONNX_H
#define LS_COMPILER_OPS_FUSED_ONNX_H

#include "compiler/ops/row.h"

extern const LsOnnxOp ls_onnx_conv, ls_onnx_gemm, ls_onnx_matmul;

/* The operands with these bits hold reals, where they are given. */
bool ls_onnx_takes_reals(LsOnnxNode *n, unsigned operands);
/* Operand k, which is not read, is absent; reports otherwise. */
bool ls_onnx_lacks(LsOnnxNode *n, int k, const char *what);
/* The layer norm over the last axis of x; the bias may be none. The first of three results
 * (LAYER_NORM). */
LsValueId ls_layer_norm(LsOnnxNode *n, LsValueId x, LsValueId scale, LsValueId bias, double eps);
/* RMSNormalization of x, from the node's attribute `axis` on. None after an error. */
LsValueId ls_rms_norm(LsOnnxNode *n, LsValueId x, LsValueId scale, double epsilon);

#endif
