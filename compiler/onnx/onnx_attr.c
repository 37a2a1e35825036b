/* compiler/onnx/onnx_attr.c -- attributes and compile-time operands of a node of the file. */
#include "compiler/onnx/onnx_attr.h"

#include "compiler/ir/graph.h"
#include "compiler/onnx_file/onnx_tensor.h"
#include "compiler/onnx_file/onnx_wire.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define AT(kind) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##kind

static const char *const kind_name[] = {
    [AT(FLOAT)] = "a float", [AT(INT)] = "an integer", [AT(STRING)] = "a string",
    [AT(TENSOR)] = "a tensor", [AT(GRAPH)] = "a graph", [AT(FLOATS)] = "a list of floats",
    [AT(INTS)] = "a list of integers", [AT(STRINGS)] = "a list of strings",
};

bool ls_onnx_error(const LsOnnxNode *n, LsErrId id, const char *hint, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return ls_error(n->cx, (LsWhere){n->g->node[0].onnx, n->name, n->op}, id, hint, "%s", text);
}

static const Onnx__AttributeProto *find(const LsOnnxNode *n, const char *attr)
{
    return ls_onnx_attribute(n->proto, attr);
}

/* The type of an attribute. Files before IR version 3 may omit it; the field that is set then gives
 * the type. */
static int type_of(const Onnx__AttributeProto *a)
{
    if (a->has_type && a->type != AT(UNDEFINED))
        return a->type;
    if (a->n_ints > 0 || a->n_floats > 0)
        return a->n_ints > 0 ? AT(INTS) : AT(FLOATS);
    if (a->n_strings > 0)
        return AT(STRINGS);
    if (a->has_s || a->t != NULL)
        return a->has_s ? AT(STRING) : AT(TENSOR);
    return a->has_f ? AT(FLOAT) : a->has_i ? AT(INT) : AT(UNDEFINED);
}

/* The attribute, if it exists with that type. An empty list may have any list type. */
static const Onnx__AttributeProto *get(const LsOnnxNode *n, const char *attr, int want)
{
    const Onnx__AttributeProto *a = find(n, attr);
    if (a == NULL || type_of(a) == want)
        return a;
    bool empty =
        a->n_ints + a->n_floats + a->n_strings == 0 && (want == AT(INTS) || want == AT(FLOATS));
    if (empty &&
        (type_of(a) == AT(INTS) || type_of(a) == AT(FLOATS) || type_of(a) == AT(UNDEFINED)))
        return a;
    int have = type_of(a);
    bool known = have > 0 && have < (int)(sizeof kind_name / sizeof *kind_name) && kind_name[have];
    ls_onnx_error(n, LS_E_ATTR, NULL, "attribute '%s' is %s, it must be %s", attr,
                  known ? kind_name[have] : "of another kind", kind_name[want]);
    return NULL;
}

bool ls_onnx_has(const LsOnnxNode *n, const char *attr) { return find(n, attr) != NULL; }

int64_t ls_onnx_int(const LsOnnxNode *n, const char *attr, int64_t otherwise)
{
    const Onnx__AttributeProto *a = get(n, attr, AT(INT));
    return a != NULL ? a->i : otherwise;
}

double ls_onnx_float(const LsOnnxNode *n, const char *attr, double otherwise)
{
    const Onnx__AttributeProto *a = get(n, attr, AT(FLOAT));
    return a != NULL ? (double)a->f : otherwise;
}

static const char *text_of(const LsOnnxNode *n, ProtobufCBinaryData from)
{
    char *s = ls_arena_alloc(n->cx->arena, from.len + 1, 1);
    return from.len > 0 ? memcpy(s, from.data, from.len) : s;
}

const char *ls_onnx_string(const LsOnnxNode *n, const char *attr, const char *otherwise)
{
    const Onnx__AttributeProto *a = get(n, attr, AT(STRING));
    return a != NULL ? text_of(n, a->s) : otherwise;
}

static bool fits(const LsOnnxNode *n, const char *what, size_t have, int max)
{
    if (have <= (size_t)max)
        return true;
    return ls_onnx_error(n, LS_E_ATTR, NULL, "%s has %zu numbers, at most %d are valid", what,
                         have, max);
}

static const char *attr_text(const LsOnnxNode *n, const char *attr)
{
    return ls_arena_printf(n->cx->arena, "attribute '%s'", attr);
}

int ls_onnx_ints(const LsOnnxNode *n, const char *attr, int max, int64_t out[])
{
    const Onnx__AttributeProto *a = get(n, attr, AT(INTS));
    if (a == NULL || !fits(n, attr_text(n, attr), a->n_ints, max))
        return -1;
    for (size_t i = 0; i < a->n_ints; i++)
        out[i] = a->ints[i];
    return (int)a->n_ints;
}

int ls_onnx_floats(const LsOnnxNode *n, const char *attr, int max, double out[])
{
    const Onnx__AttributeProto *a = get(n, attr, AT(FLOATS));
    if (a == NULL || !fits(n, attr_text(n, attr), a->n_floats, max))
        return -1;
    for (size_t i = 0; i < a->n_floats; i++)
        out[i] = (double)a->floats[i];
    return (int)a->n_floats;
}

int ls_onnx_strings(const LsOnnxNode *n, const char *attr, int max, const char *out[])
{
    const Onnx__AttributeProto *a = get(n, attr, AT(STRINGS));
    if (a == NULL)
        return -1;
    if (a->n_strings > (size_t)max) {
        ls_onnx_error(n, LS_E_ATTR, NULL, "attribute '%s' has %zu texts, at most %d are valid",
                      attr, a->n_strings, max);
        return -1;
    }
    for (size_t i = 0; i < a->n_strings; i++)
        out[i] = text_of(n, a->strings[i]);
    return (int)a->n_strings;
}

int ls_onnx_length(const LsOnnxNode *n, const char *attr)
{
    const Onnx__AttributeProto *a = find(n, attr);
    size_t count = a == NULL ? 0 : a->n_ints > a->n_floats ? a->n_ints : a->n_floats;
    return count > INT32_MAX ? INT32_MAX : (int)count;
}

LsValueId ls_onnx_tensor(const LsOnnxNode *n, const char *attr)
{
    const Onnx__AttributeProto *a = get(n, attr, AT(TENSOR));
    LsWhere at = {n->g->node[0].onnx, n->name, n->op};
    LsShape shape;
    LsType type;
    if (a == NULL)
        return (LsValueId){0};
    if (a->t == NULL) {
        ls_onnx_error(n, LS_E_ATTR, NULL, "attribute '%s' holds no tensor", attr);
        return (LsValueId){0};
    }
    const void *data = NULL;
    if (ls_tensor_shape(n->cx, at, a->t, &shape, &type))
        data = ls_tensor_data(n->cx, at, NULL, a->t);
    return data != NULL ? ls_const_add(n->cx, n->g, type, &shape, data) : (LsValueId){0};
}

/* Makes operand k a constant of at most max elements: their number, or -1, -2 as in onnx_attr.h. */
static int settle(LsOnnxNode *n, int k, int max)
{
    if (k >= n->nin || !ls_is(n->in[k]))
        return -1;
    LsValue *v = &n->g->value[n->in[k].i];
    bool initializer = v->kind == LS_V_PARAM || v->kind == LS_V_STATE;
    const int64_t count = ls_count(&v->shape);
    const char *what = ls_arena_printf(n->cx->arena, "operand %d ('%s')", k, v->name);
    if (initializer && v->data == NULL && !fits(n, what, (size_t)count, max))
        return -2;
    if (initializer && v->data == NULL && n->g->source.weightless) {
        ls_onnx_error(n, LS_E_DATA, "keep the data file beside the model",
                      "%s is a setting, and its data is missing", what);
        return -2;
    }
    if (v->kind != LS_V_CONST && !(initializer && v->data != NULL && !v->once_written)) {
        ls_onnx_error(n, LS_E_NOT_CONST,
                      "only constants and results of static shapes are allowed here",
                      "%s must be known at compile time", what);
        return -2;
    }
    if (!fits(n, what, (size_t)count, max))
        return -2;
    v->kind = LS_V_CONST;
    return (int)count;
}

int ls_onnx_const_ints(LsOnnxNode *n, int k, int max, int64_t out[])
{
    int count = settle(n, k, max);
    if (count >= 0 && ls_is_float(ls_type(n->g, n->in[k]))) {
        ls_onnx_error(n, LS_E_TYPE, "a Cast to int64 in front makes them integers",
                      "operand %d ('%s') must have integers, not "
                      "floats",
                      k, n->g->value[n->in[k].i].name);
        return -2;
    }
    for (int i = 0; i < count; i++)
        out[i] = ls_const_int_at(n->g, n->in[k], i);
    return count;
}

int ls_onnx_const_reals(LsOnnxNode *n, int k, int max, double out[])
{
    int count = settle(n, k, max);
    for (int i = 0; i < count; i++)
        out[i] = ls_const_at(n->g, n->in[k], i);
    return count;
}

int ls_onnx_axis(LsOnnxNode *n, int64_t axis, int rank)
{
    if (axis >= -(int64_t)rank && axis < rank)
        return (int)(axis < 0 ? axis + rank : axis);
    ls_onnx_error(
        n, LS_E_ATTR,
        "an operand has fewer axes than the node expects: --shape gives an input other axes",
        "axis %" PRId64 " is outside a tensor of rank %d", axis, rank);
    return -1;
}
