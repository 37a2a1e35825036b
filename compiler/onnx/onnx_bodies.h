/* compiler/onnx/onnx_bodies.h -- operators of ai.onnx that are defined by a body and have no row. */
#ifndef LS_COMPILER_ONNX_ONNX_BODIES_H
#define LS_COMPILER_ONNX_ONNX_BODIES_H

#include "compiler/onnx/onnx_wire.h"

/* The body as a function, to be inlined like a model's own; NULL: the operator has none here. */
const Onnx__FunctionProto *ls_onnx_body(LsArena *a, const char *op, int version);

#endif
