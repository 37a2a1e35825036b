/* compiler/onnx/onnx_flex_attention.h -- ai.onnx.preview.FlexAttention: attention whose scores and
 * probabilities bodies change. */
#ifndef LS_COMPILER_ONNX_ONNX_FLEX_ATTENTION_H
#define LS_COMPILER_ONNX_ONNX_FLEX_ATTENTION_H

#include "compiler/onnx/onnx_run_body.h"

/* Builds the node n, which is f. in: Q, K, V. Sets to[0]; false after diagnostics. */
bool ls_onnx_flex(const LsOnnxNode *n, const LsOnnxFlat *f, const LsValueId in[3],
                  LsOnnxValue to[]);

#endif
