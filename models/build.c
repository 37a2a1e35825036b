/* models/build.c -- nodes, constants, weights, inputs and outputs of a graph under construction. */
#include "models/build.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool ls_build_fail(LsBuild *b, const char *fmt, ...)
{
    va_list ap;
    if (b->failed)
        return false;
    va_start(ap, fmt);
    vsnprintf(b->err, sizeof b->err, fmt, ap);
    va_end(ap);
    b->failed = true;
    return false;
}

const char *ls_build_name(LsBuild *b, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return ls_arena_strdup(b->arena, text);
}

/* protobuf-c's structs are not const, but nothing here writes through them. */
static char *text(const char *s) { return (char *)(uintptr_t)s; }

/* The type of a graph input or output. */
static Onnx__ValueInfoProto *value_info(LsBuild *b, const char *name, int elem_type, LsTensor x)
{
    Onnx__TensorShapeProto *shape = ls_arena_alloc(b->arena, 1, sizeof *shape);
    Onnx__TypeProto__Tensor *tensor = ls_arena_alloc(b->arena, 1, sizeof *tensor);
    Onnx__TypeProto *type = ls_arena_alloc(b->arena, 1, sizeof *type);
    Onnx__ValueInfoProto *v = ls_arena_alloc(b->arena, 1, sizeof *v);
    onnx__tensor_shape_proto__init(shape);
    onnx__type_proto__tensor__init(tensor);
    onnx__type_proto__init(type);
    onnx__value_info_proto__init(v);
    shape->dim = ls_arena_alloc(b->arena, (size_t)x.rank, sizeof *shape->dim);
    shape->n_dim = (size_t)x.rank;
    for (int i = 0; i < x.rank; i++) {
        Onnx__TensorShapeProto__Dimension *d = ls_arena_alloc(b->arena, 1, sizeof *d);
        onnx__tensor_shape_proto__dimension__init(d);
        if (x.dim[i] == 0) {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            d->dim_param = text("N");
        } else {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            d->dim_value = x.dim[i];
        }
        shape->dim[i] = d;
    }
    tensor->has_elem_type = true;
    tensor->elem_type = elem_type;
    tensor->shape = shape;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    v->name = text(name);
    v->type = type;
    return v;
}

LsTensor ls_build_input(LsBuild *b, const char *name, int elem_type, LsTensor shape)
{
    shape.name = name;
    shape.dim[0] = b->batch;
    b->input[b->ninput++] = value_info(b, name, elem_type, shape);
    return shape;
}

void ls_build_output(LsBuild *b, const char *name, LsTensor x)
{
    b->output[b->noutput++] =
        value_info(b, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, x);
    for (uint32_t i = 0; i < b->nnode; i++) {
        Onnx__NodeProto *n = b->node[i];
        for (size_t k = 0; k < n->n_input; k++)
            if (strcmp(n->input[k], x.name) == 0)
                n->input[k] = text(name);
        for (size_t k = 0; k < n->n_output; k++)
            if (strcmp(n->output[k], x.name) == 0)
                n->output[k] = text(name);
    }
}

int64_t ls_weight_elements(const LsWeight *w)
{
    int64_t n = 1;
    for (int i = 0; i < w->rank; i++)
        n *= w->dim[i];
    return n;
}

void ls_build_weight(LsBuild *b, LsWeight w)
{
    int64_t n = 1;
    for (int i = 0; i < w.rank; i++)
        if (w.dim[i] <= 0 || __builtin_mul_overflow(n, w.dim[i], &n) || n > INT64_C(1) << 40) {
            ls_build_fail(b, "'%s' would have more than 2^40 elements", w.name);
            return;
        }
    b->weight = ls_arena_grow(b->arena, b->weight, b->nweight, b->nweight + 1, sizeof *b->weight,
                              &b->cap_weight);
    b->weight[b->nweight++] = w;
}

int64_t ls_build_parameters(const LsBuild *b)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < b->nweight; i++)
        if (ls_weight_is_float(&b->weight[i]) && !b->weight[i].statistic)
            n += ls_weight_elements(&b->weight[i]);
    return n;
}

LsTensor ls_build_node(LsBuild *b, const char *op, const char *at, int nin,
                       const char *const in[], LsTensor shape)
{
    Onnx__NodeProto *n = ls_arena_alloc(b->arena, 1, sizeof *n);
    onnx__node_proto__init(n);
    n->op_type = text(op);
    n->name = text(at);
    n->n_input = (size_t)nin;
    n->input = ls_arena_alloc(b->arena, (size_t)nin + 1, sizeof *n->input);
    for (int i = 0; i < nin; i++)
        n->input[i] = text(in[i]);
    n->output = ls_arena_alloc(b->arena, 4, sizeof *n->output);
    n->n_output = 1;
    n->output[0] = text(at);
    b->node = ls_arena_grow(b->arena, b->node, b->nnode, b->nnode + 1, sizeof *b->node,
                            &b->cap_node);
    b->node[b->nnode++] = n;
    shape.name = at;
    return shape;
}

void ls_build_extra_output(LsBuild *b, const char *name)
{
    Onnx__NodeProto *n = b->node[b->nnode - 1];
    n->output[n->n_output++] = text(name);
}

static Onnx__AttributeProto *attribute(LsBuild *b, const char *name,
                                       Onnx__AttributeProto__AttributeType type)
{
    Onnx__NodeProto *n = b->node[b->nnode - 1];
    Onnx__AttributeProto *a = ls_arena_alloc(b->arena, 1, sizeof *a);
    Onnx__AttributeProto **list = ls_arena_alloc(b->arena, n->n_attribute + 1, sizeof *list);
    onnx__attribute_proto__init(a);
    a->name = text(name);
    a->has_type = true;
    a->type = type;
    for (size_t i = 0; i < n->n_attribute; i++)
        list[i] = n->attribute[i];
    list[n->n_attribute++] = a;
    n->attribute = list;
    return a;
}

void ls_build_int_attr(LsBuild *b, const char *name, int64_t i)
{
    Onnx__AttributeProto *a = attribute(b, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = true;
    a->i = i;
}

void ls_build_float_attr(LsBuild *b, const char *name, float f)
{
    Onnx__AttributeProto *a = attribute(b, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = true;
    a->f = f;
}

void ls_build_ints_attr(LsBuild *b, const char *name, int n, const int64_t i[])
{
    Onnx__AttributeProto *a = attribute(b, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    a->n_ints = (size_t)n;
    a->ints = ls_arena_alloc(b->arena, (size_t)n, sizeof *a->ints);
    memcpy(a->ints, i, (size_t)n * sizeof *i);
}

void ls_build_string_attr(LsBuild *b, const char *name, const char *s)
{
    Onnx__AttributeProto *a = attribute(b, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    a->has_s = true;
    a->s.len = strlen(s);
    a->s.data = (uint8_t *)ls_arena_strdup(b->arena, s);
}

/* A Constant node with `bytes` of raw data; n < 0: a scalar. */
static const char *constant(LsBuild *b, int type, int n, size_t bytes, const void *raw)
{
    Onnx__TensorProto *t = ls_arena_alloc(b->arena, 1, sizeof *t);
    const char *name = ls_build_name(b, "constant_%" PRIu32, b->nconst++);
    ls_build_node(b, "Constant", name, 0, NULL, (LsTensor){0});
    onnx__tensor_proto__init(t);
    t->has_data_type = true;
    t->data_type = type;
    t->n_dims = n >= 0;
    t->dims = ls_arena_alloc(b->arena, 1, sizeof *t->dims);
    t->dims[0] = n;
    t->has_raw_data = true;
    t->raw_data.len = bytes;
    t->raw_data.data = ls_arena_alloc(b->arena, bytes, 1);
    memcpy(t->raw_data.data, raw, bytes);
    attribute(b, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t = t;
    return name;
}

const char *ls_build_floats(LsBuild *b, int n, const float v[])
{
    return constant(b, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, n, (size_t)n * sizeof *v, v);
}

const char *ls_build_ints(LsBuild *b, int n, const int64_t v[])
{
    return constant(b, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, n, (size_t)n * sizeof *v, v);
}

const char *ls_build_scalar(LsBuild *b, float v)
{
    return constant(b, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, -1, sizeof v, &v);
}

const char *ls_build_true(LsBuild *b)
{
    return constant(b, ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, -1, 1, (uint8_t[]){1});
}
