/* compiler/onnx/onnx_infer_form.h -- rewrites batch norms and dropouts of a file for inference. */
#ifndef LS_COMPILER_ONNX_ONNX_INFER_FORM_H
#define LS_COMPILER_ONNX_ONNX_INFER_FORM_H

#include "compiler/onnx/onnx_wire.h"

/* Rewrites the graph's nodes and those of its functions in place. */
void ls_onnx_infer_form(LsArena *a, Onnx__ModelProto *m);

#endif
