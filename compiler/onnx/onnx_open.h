/* compiler/onnx/onnx_open.h -- opens a model file, with its nodes in one flat list. */
#ifndef LS_COMPILER_ONNX_ONNX_OPEN_H
#define LS_COMPILER_ONNX_ONNX_OPEN_H

#include "compiler/onnx/import_options.h"
#include "compiler/onnx/onnx_model.h"

enum { LS_OPSET_MIN = 7, LS_OPSET_MAX = 28, LS_IR_MIN = 3, LS_IR_MAX = 14 };

/* Reads the file, checks versions, unties parameters (unless o->tie_identity), adds o->adapters,
 * inlines model-local functions; NULL after diagnostics. */
LsOnnxModel *ls_onnx_open(LsCtx *cx, const char *path, const LsImportOptions *o);

#endif
