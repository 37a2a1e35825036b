/* compiler/onnx_repair/module_scope.h -- modules by the names of nodes: PyTorch's TorchScript
 * exporter calls the nodes of module blocks.0.norm /blocks.0/norm/LayerNormalization. */
#ifndef LS_COMPILER_ONNX_REPAIR_MODULE_SCOPE_H
#define LS_COMPILER_ONNX_REPAIR_MODULE_SCOPE_H

#include "base/arena.h"

#include <stdbool.h>

/* The module of a node: blocks.0.norm. A second call of the module has a number: norm_1, which
 * stays. NULL: the name tells no module. */
const char *ls_scope_module(LsArena *a, const char *node);
/* Whether the module may read that parameter as its own: the parameter's module is this one, inside
 * it, or around it. */
bool ls_scope_owns(const char *module, const char *parameter);

/* The module of a tensor that ONNX Runtime's model builder named, which has the operator between
 * the two and another word for self_attn: model.layers.0.self_attn.q_proj of
 * model.layers.0.attn.q_proj.MatMul.weight; NULL: the name is none of these. */
const char *ls_scope_of_builder(LsArena *a, const char *tensor);

#endif
