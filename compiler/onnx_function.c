/* compiler/onnx_function.c -- calls of model-local functions become the nodes of their bodies. */
#include "compiler/onnx_model.h"

bool ls_onnx_inline(LsCtx *cx, LsOnnxModel *m, const Onnx__NodeProto *node, uint32_t index)
{
    LsOnnxFlat flat = {.proto = node, .index = index, .name = ls_text(node->name),
                       .version = ls_onnx_version(m->proto->opset_import, m->proto->n_opset_import,
                                                  node->domain)};
    m->node = ls_arena_grow(cx->arena, m->node, m->nnode, m->nnode + 1, sizeof flat, &m->cap_node);
    m->node[m->nnode++] = flat;
    return true;
}
