/* compiler/onnx/onnx_sequence.h -- operators over lists of tensors whose length is known, and over
 * optional values. */
#ifndef LS_COMPILER_ONNX_ONNX_SEQUENCE_H
#define LS_COMPILER_ONNX_ONNX_SEQUENCE_H

#include "compiler/onnx/import_state.h"

LsSequence *ls_sequence_new(LsImport *im, int64_t n);   /* empty, with room for n items */
/* The items, joined along a new axis. */
LsValueId ls_onnx_stack(LsCtx *cx, LsGraph *g, const LsValueId item[], uint32_t n, int axis);
/* Builds the node (ls_onnx_sequence_op); *out is none where the result is a sequence or empty. */
bool ls_onnx_sequence(LsImport *im, LsOnnxNode *n, LsValueId *out);

#endif
