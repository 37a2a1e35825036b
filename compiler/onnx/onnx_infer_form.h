/* compiler/onnx/onnx_infer_form.h -- rewrites batch norms and dropouts of a file for inference. */
#ifndef LS_COMPILER_ONNX_ONNX_INFER_FORM_H
#define LS_COMPILER_ONNX_ONNX_INFER_FORM_H

#include "base/name_ids.h"
#include "compiler/onnx_file/onnx_wire.h"

/* Rewrites the graph's nodes and those of its functions in place. rounding: all names of a model
 * that became float32 throughout (onnx_widen.h), whose casts to 16 bits still round; NULL: types
 * are as the file has them. */
void ls_onnx_infer_form(LsArena *a, Onnx__ModelProto *m, LsNames *rounding);

#endif
