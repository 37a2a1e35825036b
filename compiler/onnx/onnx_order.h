/* compiler/onnx/onnx_order.h -- names of values, and nodes in an order that can be run. */
#ifndef LS_COMPILER_ONNX_ONNX_ORDER_H
#define LS_COMPILER_ONNX_ONNX_ORDER_H

#include "compiler/onnx/onnx_model.h"

/* Names, uses before definition, cycles: fills names, maker and order. False after diagnostics;
 * what could be resolved is filled in all the same, so that more problems can be found. */
bool ls_onnx_resolve(LsCtx *cx, LsOnnxModel *m);

#endif
