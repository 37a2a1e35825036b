/* compiler/adapters/adapter_nodes.h -- the nodes that an adapter adds behind the node of its
 * module. Each is called, like its result, MODULE.END, or similarly if that is taken. */
#ifndef LS_COMPILER_ADAPTERS_ADAPTER_NODES_H
#define LS_COMPILER_ADAPTERS_ADAPTER_NODES_H

#include "compiler/onnx_repair/file_edit.h"

typedef struct LsAdapterNodes {
    LsEditor *u;
    const char *module;
    Onnx__NodeProto **made; uint32_t nmade, cap_made;   /* in their order; not yet in the graph */
} LsAdapterNodes;

/* A node with one operand, or two. */
Onnx__NodeProto *ls_adapter_node(LsAdapterNodes *n, const char *op, const char *x, const char *y,
                                 const char *end);
/* The same; the name of its result. */
const char *ls_adapter_add(LsAdapterNodes *n, const char *op, const char *x, const char *y,
                           const char *end);
/* Constants: a real and true without axes, a list of integers. */
const char *ls_adapter_real(LsAdapterNodes *n, double value, const char *end);
const char *ls_adapter_true(LsAdapterNodes *n, const char *end);
const char *ls_adapter_ints(LsAdapterNodes *n, const int64_t *v, int64_t count, const char *end);
/* An attribute more. */
void ls_adapter_attribute(LsArena *a, Onnx__NodeProto *p, const Onnx__AttributeProto *t);
/* The attribute axes = [axis]. */
void ls_adapter_axis(LsArena *a, Onnx__NodeProto *p, int64_t axis);
void ls_adapter_int(LsArena *a, Onnx__NodeProto *p, const char *name, int64_t value);

#endif
