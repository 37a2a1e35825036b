/* compiler/onnx/onnx_sequence.h -- operators over lists of tensors whose length is known. */
#ifndef LS_COMPILER_ONNX_ONNX_SEQUENCE_H
#define LS_COMPILER_ONNX_ONNX_SEQUENCE_H

#include "compiler/onnx/import_state.h"

/* Builds the node (ls_onnx_sequence_op); *out is none where the result is a sequence. */
bool ls_onnx_sequence(LsImport *im, LsOnnxNode *n, LsValueId *out);

#endif
