/* compiler/onnx/onnx_order.h -- resolves names of values and puts nodes in a run order. */
#ifndef LS_COMPILER_ONNX_ONNX_ORDER_H
#define LS_COMPILER_ONNX_ONNX_ORDER_H

#include "compiler/onnx/onnx_model.h"

/* Resolves names, finds uses before definition and cycles: fills names, maker and order. After
 * diagnostics returns false, with the resolvable part filled in, so that later checks find more
 * problems. */
bool ls_onnx_resolve(LsCtx *cx, LsOnnxModel *m);

#endif
