/* compiler/onnx/onnx_function.h -- inlines function calls. */
#ifndef LS_COMPILER_ONNX_ONNX_FUNCTION_H
#define LS_COMPILER_ONNX_ONNX_FUNCTION_H

#include "compiler/onnx/onnx_model.h"

/* Fills m->node: the graph's nodes, with calls of local functions replaced by their bodies. */
bool ls_onnx_inline(LsCtx *cx, LsOnnxModel *m);
/* Appends a node of a body of `at` to m->node, with calls replaced likewise. prefix: of node
 * names. */
bool ls_onnx_inline_node(LsCtx *cx, LsOnnxModel *m, const LsOnnxFlat *at, const char *prefix,
                    const Onnx__NodeProto *node);

#endif
