/* compiler/adapters/adapter_nodes.c -- see the header. */
#include "compiler/adapters/adapter_nodes.h"

#include <string.h>

Onnx__NodeProto *ls_adapter_node(LsAdapterNodes *n, const char *op, const char *x, const char *y,
                                 const char *end)
{
    LsArena *a = n->u->cx->arena;
    char *to = (char *)ls_edit_fresh(n->u, ls_arena_printf(a, "%s.%s", n->module, end));
    Onnx__NodeProto *p = ls_edit_node(n->u, op, x, to, y != NULL ? 2 : 1);
    if (y != NULL)
        p->input[1] = ls_arena_strdup(a, y);
    n->made = ls_arena_grow(a, n->made, n->nmade, n->nmade + 1, sizeof *n->made, &n->cap_made);
    n->made[n->nmade++] = p;
    return p;
}

const char *ls_adapter_add(LsAdapterNodes *n, const char *op, const char *x, const char *y,
                           const char *end)
{
    return ls_adapter_node(n, op, x, y, end)->output[0];
}

void ls_adapter_attribute(LsArena *a, Onnx__NodeProto *p, const Onnx__AttributeProto *t)
{
    Onnx__AttributeProto **list = ls_arena_alloc(a, p->n_attribute + 1, sizeof *list);
    if (p->n_attribute > 0)
        memcpy(list, p->attribute, p->n_attribute * sizeof *list);
    list[p->n_attribute++] = (Onnx__AttributeProto *)t;
    p->attribute = list;
}

/* A Constant of that type and shape. */
static const char *add_constant(LsAdapterNodes *n, int32_t type, const void *data, size_t bytes,
                                int64_t count, const char *end)
{
    LsArena *a = n->u->cx->arena;
    Onnx__NodeProto *p = ls_adapter_node(n, "Constant", "", NULL, end);
    Onnx__AttributeProto *t = ls_arena_alloc(a, 1, sizeof *t);
    Onnx__TensorProto *v = ls_arena_alloc(a, 1, sizeof *v);
    p->n_input = 0;
    onnx__attribute_proto__init(t);
    onnx__tensor_proto__init(v);
    t->name = ls_arena_strdup(a, "value");
    t->has_type = true;
    t->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    t->t = v;
    if (count >= 0) {
        v->dims = ls_arena_alloc(a, 1, sizeof *v->dims);
        v->dims[0] = count;
        v->n_dims = 1;
    }
    v->has_data_type = v->has_raw_data = true;
    v->data_type = type;
    v->raw_data = (ProtobufCBinaryData){bytes, ls_arena_alloc(a, bytes, 1)};
    memcpy(v->raw_data.data, data, bytes);
    ls_adapter_attribute(a, p, t);
    return p->output[0];
}

const char *ls_adapter_real(LsAdapterNodes *n, double value, const char *end)
{
    const float real = (float)value;
    return add_constant(n, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &real, sizeof real, -1, end);
}

const char *ls_adapter_true(LsAdapterNodes *n, const char *end)
{
    return add_constant(n, ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, "\1", 1, -1, end);
}

const char *ls_adapter_ints(LsAdapterNodes *n, const int64_t *v, int64_t count, const char *end)
{
    return add_constant(n, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, v, (size_t)count * sizeof *v,
                        count, end);
}

void ls_adapter_int(LsArena *a, Onnx__NodeProto *p, const char *name, int64_t value)
{
    Onnx__AttributeProto *t = ls_arena_alloc(a, 1, sizeof *t);
    onnx__attribute_proto__init(t);
    t->name = ls_arena_strdup(a, name);
    t->has_type = t->has_i = true;
    t->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    t->i = value;
    ls_adapter_attribute(a, p, t);
}

void ls_adapter_axis(LsArena *a, Onnx__NodeProto *p, int64_t axis)
{
    Onnx__AttributeProto *t = ls_arena_alloc(a, 1, sizeof *t);
    onnx__attribute_proto__init(t);
    t->name = ls_arena_strdup(a, "axes");
    t->has_type = true;
    t->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    t->ints = ls_arena_alloc(a, 1, sizeof *t->ints);
    t->ints[0] = axis;
    t->n_ints = 1;
    ls_adapter_attribute(a, p, t);
}
