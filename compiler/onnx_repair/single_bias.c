/* compiler/onnx_repair/single_bias.c -- see the header. */
#include "compiler/onnx_repair/single_bias.h"

#include <string.h>

#include "compiler/onnx_file/onnx_wire.h"

enum { BIAS = 3 };              /* operand of RNN, LSTM and GRU */

static bool flag(const Onnx__NodeProto *p, const char *name)
{
    const Onnx__AttributeProto *a = ls_onnx_attribute(p, name);
    return a != NULL && a->i != 0;
}

/* A GRU that resets behind the product has two biases in Keras, too. */
static bool has_one(const Onnx__NodeProto *p)
{
    const char *op = ls_text(p->op_type);
    return strcmp(op, "LSTM") == 0 || strcmp(op, "RNN") == 0
           || (strcmp(op, "GRU") == 0 && !flag(p, "linear_before_reset"));
}

/* The bias of a direction is a row of two halves. */
static bool second_is_zero(LsEditor *u, const Onnx__TensorProto *t)
{
    const LsFileReal *v = t->n_dims == 2 && t->dims[1] % 2 == 0 ? ls_edit_data(u, t) : NULL;
    for (int64_t i = 0; v != NULL && i < ls_edit_count(t); i++)
        if (i % t->dims[1] >= t->dims[1] / 2 && v[i] != 0)
            return false;
    return v != NULL;
}

static Onnx__TensorProto *half_of(LsEditor *u, const Onnx__TensorProto *t, const char *name,
                                  bool first)
{
    LsArena *a = u->cx->arena;
    const int64_t rows = t->dims[0], width = t->dims[1] / 2;
    const LsFileReal *v = ls_edit_data(u, t);
    float *data = ls_arena_alloc(a, (size_t)(rows * width) + 1, sizeof *data);
    for (int64_t i = 0; first && i < rows * width; i++)
        data[i] = v[i / width * 2 * width + i % width];
    Onnx__TensorProto *half = ls_arena_alloc(a, 1, sizeof *half);
    onnx__tensor_proto__init(half);
    half->name = (char *)name;
    half->n_dims = 2;
    half->dims = ls_arena_alloc(a, 2, sizeof *half->dims);
    half->dims[0] = rows;
    half->dims[1] = width;
    half->has_data_type = half->has_raw_data = true;
    half->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    half->raw_data = (ProtobufCBinaryData){(size_t)(rows * width) * sizeof *data, (uint8_t *)data};
    return half;
}

static Onnx__AttributeProto *attribute(LsEditor *u, Onnx__NodeProto *p, const char *name)
{
    LsArena *a = u->cx->arena;
    Onnx__AttributeProto *at = ls_arena_alloc(a, 1, sizeof *at);
    onnx__attribute_proto__init(at);
    at->name = ls_arena_strdup(a, name);
    at->has_type = true;
    p->attribute = ls_arena_alloc(a, 1, sizeof *p->attribute);
    p->attribute[p->n_attribute++] = at;
    return at;
}

static void split(LsEditor *u, Onnx__TensorProto *t)
{
    LsOnnxEdits *e = u->e;
    LsArena *a = u->cx->arena;
    const char *first = ls_edit_fresh(u, ls_arena_printf(a, "%s.input", t->name));
    const char *second = ls_edit_fresh(u, ls_arena_printf(a, "%s.zeros", t->name));
    Onnx__NodeProto *join = ls_edit_node(u, "Concat", first, t->name, 2);
    join->input[1] = (char *)second;
    Onnx__AttributeProto *axis = attribute(u, join, "axis");
    axis->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    axis->has_i = true;
    axis->i = 1;
    Onnx__NodeProto *zeros = ls_edit_node(u, "Constant", "", (char *)second, 0);
    Onnx__AttributeProto *value = attribute(u, zeros, "value");
    value->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    value->t = half_of(u, t, "", false);
    ls_edit_add_initializer(u, half_of(u, t, first, true));
    ls_edit_drop_initializer(u, t);
    ls_edit_add_in_front(u, join);
    ls_edit_add_in_front(u, zeros);
    ls_edit_note(u, &e->halved, &e->nhalved, &e->cap_halved, t->name, NULL);
}

void ls_onnx_single_bias(LsEditor *u)
{
    for (size_t i = 0; i < u->g->n_node; i++) {
        const Onnx__NodeProto *p = u->g->node[i];
        const char *name = p->n_input > BIAS && has_one(p) ? ls_text(p->input[BIAS]) : "";
        Onnx__TensorProto *t = ls_edit_real(u, name);
        if (t == NULL || ls_edit_reads(u, name) != 1 || !second_is_zero(u, t))
            continue;
        u->real[ls_names_find(&u->names, name)] = NULL;
        split(u, t);
        i += 2;                 /* two nodes came in front */
    }
}
