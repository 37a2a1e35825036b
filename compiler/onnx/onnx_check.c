/* compiler/onnx/onnx_check.c -- checks that redundant information agrees: an initializer and the
 * graph input of its name, an attribute given twice, the float types of a node's operands. */
#include "compiler/onnx/onnx_check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/onnx/onnx_outputs.h"

/* ---- initializers and the graph inputs of their names ---- */

static const char *dims_text(LsArena *a, const Onnx__TensorProto *t)
{
    const char *text = t->n_dims == 0 ? "scalar" : "";
    for (size_t k = 0; k < t->n_dims && k < 2 * LS_MAX_RANK; k++)
        text = ls_arena_printf(a, "%s%s%" PRId64, text, k > 0 ? "x" : "", t->dims[k]);
    return text;
}

/* An input without a type or shape, and a symbol, agree with anything. */
static bool same_tensor(const Onnx__TypeProto__Tensor *declared, const Onnx__TensorProto *t)
{
    const Onnx__TensorShapeProto *s = declared->shape;
    if (declared->elem_type != 0 && declared->elem_type != t->data_type)
        return false;
    if (s == NULL)
        return true;
    bool same = s->n_dim == t->n_dims;
    for (size_t k = 0; same && k < s->n_dim; k++)
        same = s->dim[k]->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
            || s->dim[k]->dim_value == t->dims[k];
    return same;
}

static bool check_input(LsCtx *cx, const Onnx__ValueInfoProto *p, const Onnx__TensorProto *t)
{
    const Onnx__TypeProto *type = p->type;
    bool tensor = type != NULL && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
        && type->tensor_type != NULL;
    if (tensor && same_tensor(type->tensor_type, t))
        return true;
    const char *declared = !tensor ? "no tensor"
        : ls_arena_printf(cx->arena, "%s %s", ls_onnx_type_name(type->tensor_type->elem_type),
                          ls_onnx_declared_text(cx->arena, type->tensor_type->shape));
    return ls_error(cx, LS_NOWHERE, LS_E_NAME, "export the model again: the file is not consistent",
                    "graph input '%s' is %s, the initializer of that name is %s %s",
                    ls_text(p->name), declared, ls_onnx_type_name(t->data_type),
                    dims_text(cx->arena, t));
}

static bool check_inputs(LsCtx *cx, const LsOnnxModel *m)
{
    const Onnx__GraphProto *g = m->graph;
    const Onnx__TensorProto **of = ls_arena_alloc(cx->arena, m->names.n + 1, sizeof *of);
    bool good = true;
    for (size_t i = 0; i < g->n_initializer; i++)
        of[ls_names_find(&m->names, ls_text(g->initializer[i]->name))] = g->initializer[i];
    for (size_t i = 0; i < g->n_input; i++) {
        uint32_t id = ls_names_find(&m->names, ls_text(g->input[i]->name));
        if (of[id] != NULL)
            good &= check_input(cx, g->input[i], of[id]);
    }
    return good;
}

/* ---- attributes ---- */

static int by_name(const void *x, const void *y)
{
    const Onnx__AttributeProto *a = *(Onnx__AttributeProto *const *)x,
                               *b = *(Onnx__AttributeProto *const *)y;
    return strcmp(ls_text(a->name), ls_text(b->name));
}

static bool same_attribute(LsArena *a, const Onnx__AttributeProto *x, const Onnx__AttributeProto *y)
{
    size_t n = onnx__attribute_proto__get_packed_size(x);
    if (n != onnx__attribute_proto__get_packed_size(y))
        return false;
    uint8_t *bytes = ls_arena_alloc(a, 2 * n + 1, 1);
    onnx__attribute_proto__pack(x, bytes);
    onnx__attribute_proto__pack(y, bytes + n);
    return memcmp(bytes, bytes + n, n) == 0;
}

bool ls_onnx_check_attributes(LsCtx *cx, LsWhere at, const Onnx__NodeProto *p)
{
    bool good = true;
    if (p->n_attribute < 2)
        return true;
    Onnx__AttributeProto **list = ls_arena_alloc(cx->arena, p->n_attribute, sizeof *list);
    memcpy(list, p->attribute, p->n_attribute * sizeof *list);
    qsort(list, p->n_attribute, sizeof *list, by_name);
    for (size_t i = 1; i < p->n_attribute; i++)
        if (strcmp(ls_text(list[i - 1]->name), ls_text(list[i]->name)) == 0
            && !same_attribute(cx->arena, list[i - 1], list[i]))
            good = ls_error(cx, at, LS_E_ATTR, NULL,
                            "attribute '%s' is given twice, with different values",
                            ls_text(list[i]->name));
    return good;
}

/* ---- float types ---- */

/* The operator is in this list, which ends with NULL. */
static bool is_any(const LsOnnxFlat *f, const char *const op[])
{
    for (; *op != NULL; op++)
        if (ls_flat_is(f, *op))
            return true;
    return false;
}

/* ONNX type of result k of a node whose operands have type `is`; 0: not known. */
static int result_type(const LsOnnxFlat *f, size_t k, int is)
{
    static const char *const counts[] = {
        "Shape", "Size",        "Equal", "Greater", "GreaterOrEqual",
        "Less",  "LessOrEqual", "IsNaN", "IsInf",   "OptionalHasElement",
        NULL};
    const Onnx__AttributeProto *to = ls_onnx_attribute(f->proto, "to"),
                               *v = ls_onnx_attribute(f->proto, "value"),
                               *dtype = ls_onnx_attribute(f->proto, "dtype");
    if (ls_flat_is(f, "Cast"))
        return to != NULL ? (int)to->i : 0;
    if (dtype != NULL)                      /* EyeLike, RandomNormalLike */
        return (int)dtype->i;
    if (v != NULL && v->t != NULL)          /* Constant, ConstantOfShape */
        return v->t->data_type;
    if (ls_flat_is(f, "ConstantOfShape") || ls_onnx_attribute(f->proto, "value_float") != NULL
        || ls_onnx_attribute(f->proto, "value_floats") != NULL)
        return ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    bool alike = ls_flat_supported(f) && !ls_onnx_control_op(f) && !is_any(f, counts);
    return alike && (k == 0 || ls_flat_is(f, "Split")) ? is : 0;
}

/* Operators that accept floats of several types, and function bodies: bodies of ONNX's own
 * operators have float constants here, whatever the type of X. */
static bool may_mix(const LsOnnxFlat *f)
{
    static const char *const op[] = {"Attention", "BatchNormalization", "Cast", "CastLike",
                                     "Dropout",   "LayerNormalization", "Pow",  "RMSNormalization",
                                     "Resize",    "Upsample",           NULL};
    return f->inner || is_any(f, op) || ls_onnx_control_op(f) || !ls_flat_supported(f);
}

/* type: by name id, the ONNX type of a float value; 0 for other values. */
static bool check_floats(LsCtx *cx, const LsOnnxModel *m, const LsOnnxFlat *f, int type[])
{
    const Onnx__NodeProto *p = f->proto;
    int is = 0;
    size_t first = 0;
    bool good = true, free = may_mix(f);
    for (size_t k = 0; k < p->n_input && good; k++) {
        int t = type[ls_names_find(&m->names, ls_text(p->input[k]))];
        if (t != 0 && is != 0 && t != is && !free)
            good = ls_error(cx, ls_flat_where(f), LS_E_TYPE, "insert a Cast on one side",
                            "operand %zu ('%s') is %s, operand %zu ('%s') is %s", first,
                            p->input[first], ls_onnx_type_name(is), k, p->input[k],
                            ls_onnx_type_name(t));
        if (t != 0 && (is == 0 || ls_flat_is(f, "CastLike")))
            is = t, first = k;
    }
    for (size_t k = 0; k < p->n_output; k++) {
        int t = result_type(f, k, is);
        type[ls_names_find(&m->names, ls_text(p->output[k]))] = ls_onnx_type_is_float(t) ? t : 0;
    }
    return good;
}

/* Tensors of adapters are float32 beside weights of any type: everything is computed in float32,
 * and their own type says nothing of the values that they meet. */
static bool is_of_adapter(const LsAdapters *a, const LsOnnxFlat *f)
{
    return a != NULL && ls_flat_is(f, "Constant") && f->proto->n_output == 1
           && ls_names_find(&a->made, ls_text(f->proto->output[0])) != 0;
}

static bool check_types(LsCtx *cx, const LsOnnxModel *m, const LsAdapters *a)
{
    const Onnx__GraphProto *g = m->graph;
    int *type = ls_arena_alloc(cx->arena, m->names.n + 1, sizeof *type);
    bool good = true;
    for (size_t i = 0; i < g->n_input; i++) {
        const Onnx__TypeProto *t = g->input[i]->type;
        bool tensor = t != NULL && t->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
            && t->tensor_type != NULL && ls_onnx_type_is_float(t->tensor_type->elem_type);
        if (tensor)
            type[ls_names_find(&m->names, ls_text(g->input[i]->name))] = t->tensor_type->elem_type;
    }
    for (size_t i = 0; i < g->n_initializer; i++)
        if (ls_onnx_type_is_float(g->initializer[i]->data_type)
            && (a == NULL || !ls_adapters_made(a, ls_text(g->initializer[i]->name))))
            type[ls_names_find(&m->names, ls_text(g->initializer[i]->name))] =
                g->initializer[i]->data_type;
    type[0] = 0;
    for (uint32_t i = 0; i < m->norder; i++) {
        const LsOnnxFlat *f = &m->node[m->order[i]];
        good &= check_floats(cx, m, f, type);
        if (is_of_adapter(a, f))
            type[ls_names_find(&m->names, ls_text(f->proto->output[0]))] = 0;
        type[ls_names_find(&m->names, "")] = 0;
        ls_report_cut(m->report, m->node[m->order[i]].index);
    }
    return good;
}

bool ls_onnx_check(LsCtx *cx, const LsOnnxModel *m, const LsAdapters *a)
{
    bool good = check_inputs(cx, m);
    ls_report_cut(m->report, LS_REPORT_FIRST);
    for (size_t i = 0; i < m->graph->n_node; i++) {
        const Onnx__NodeProto *p = m->graph->node[i];
        LsWhere at = {(int64_t)i, ls_text(p->name), ls_text(p->op_type)};
        good &= ls_onnx_check_attributes(cx, at, p);
        ls_report_cut(m->report, (int64_t)i);
    }
    for (uint32_t i = 0; i < m->nnode; i++)
        if (m->node[i].inner) {
            good &= ls_onnx_check_attributes(cx, ls_flat_where(&m->node[i]), m->node[i].proto);
            ls_report_cut(m->report, m->node[i].index);
        }
    return check_types(cx, m, a) && good;
}
