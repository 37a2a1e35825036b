/* tests/support/onnx_make.h -- small ONNX models written by tests, and the context that imports
 * them. */
#ifndef LS_TESTS_SUPPORT_ONNX_MAKE_H
#define LS_TESTS_SUPPORT_ONNX_MAKE_H

#include "compiler/onnx/import_options.h"
#include "compiler/onnx/onnx_import.h"
#include "compiler/onnx_file/onnx_wire.h"
#include "compiler/passes/passes.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Make {
    LsCtx cx;
    char *log; size_t log_bytes;        /* diagnostics so far */
    char dir[64], path[96];             /* a fresh folder; the model in it */
    Onnx__ModelProto *m;
    Onnx__GraphProto *g;
    LsImportOptions o;
} Make;

#define MAKE_NEW(mk, type, init) ({ type *new_ = ls_arena_alloc((mk)->cx.arena, 1, sizeof *new_); \
                                    init(new_); new_; })
/* Appends item to a repeated field of a protobuf-c message. */
#define MAKE_PUSH(mk, list, n, item) do { \
        void *old_ = (list); \
        (list) = ls_arena_alloc((mk)->cx.arena, (n) + 1, sizeof *(list)); \
        if ((n) > 0) memcpy((list), old_, (n) * sizeof *(list)); \
        (list)[(n)++] = (item); } while (0)

static inline const char *make_log(Make *mk)
{
    fflush(mk->cx.log);
    return mk->log;
}

static inline void make_begin(Make *mk, int opset)
{
    *mk = (Make){.cx = {.arena = ls_arena_new()}, .o = {.training = true}};
    strcpy(mk->dir, "/tmp/lowerset-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(mk->dir));
    snprintf(mk->path, sizeof mk->path, "%s/m.onnx", mk->dir);
    mk->cx.log = open_memstream(&mk->log, &mk->log_bytes);
    mk->m = MAKE_NEW(mk, Onnx__ModelProto, onnx__model_proto__init);
    mk->g = mk->m->graph = MAKE_NEW(mk, Onnx__GraphProto, onnx__graph_proto__init);
    mk->g->name = ls_arena_strdup(mk->cx.arena, "g");
    mk->m->has_ir_version = true;
    mk->m->ir_version = 8;
    Onnx__OperatorSetIdProto *v = MAKE_NEW(mk, Onnx__OperatorSetIdProto,
                                           onnx__operator_set_id_proto__init);
    v->has_version = true;
    v->version = opset;
    MAKE_PUSH(mk, mk->m->opset_import, mk->m->n_opset_import, v);
}

static inline void make_end(Make *mk)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", mk->dir);
    ck_assert_int_eq(system(command), 0);
    fclose(mk->cx.log);
    free(mk->log);
    ls_arena_free(mk->cx.arena);
}

/* "Nx3x8": symbols and numbers. NULL: no shape. "": a scalar. */
static inline Onnx__ValueInfoProto *make_value(Make *mk, const char *name, int type,
                                               const char *dims)
{
    Onnx__ValueInfoProto *v = MAKE_NEW(mk, Onnx__ValueInfoProto, onnx__value_info_proto__init);
    v->name = ls_arena_strdup(mk->cx.arena, name);
    v->type = MAKE_NEW(mk, Onnx__TypeProto, onnx__type_proto__init);
    v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    v->type->tensor_type = MAKE_NEW(mk, Onnx__TypeProto__Tensor, onnx__type_proto__tensor__init);
    v->type->tensor_type->has_elem_type = true;
    v->type->tensor_type->elem_type = type;
    if (dims == NULL)
        return v;
    Onnx__TensorShapeProto *s =
        MAKE_NEW(mk, Onnx__TensorShapeProto, onnx__tensor_shape_proto__init);
    v->type->tensor_type->shape = s;
    char *text = ls_arena_strdup(mk->cx.arena, dims), *rest;
    for (char *t = strtok_r(text, "x", &rest); t != NULL; t = strtok_r(NULL, "x", &rest)) {
        Onnx__TensorShapeProto__Dimension *d = MAKE_NEW(mk, Onnx__TensorShapeProto__Dimension,
                                                        onnx__tensor_shape_proto__dimension__init);
        bool number = strspn(t, "-0123456789") == strlen(t);
        if (number) {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            d->dim_value = strtoll(t, NULL, 10);
        } else {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            d->dim_param = t;
        }
        MAKE_PUSH(mk, s->dim, s->n_dim, d);
    }
    return v;
}

enum {
    MAKE_FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
    MAKE_I64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
    MAKE_DOUBLE = ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE
};

static inline void make_input(Make *mk, const char *name, const char *dims)
{
    MAKE_PUSH(mk, mk->g->input, mk->g->n_input, make_value(mk, name, MAKE_FLOAT, dims));
}

static inline void make_output(Make *mk, const char *name)
{
    MAKE_PUSH(mk, mk->g->output, mk->g->n_output, make_value(mk, name, MAKE_FLOAT, NULL));
}

/* Raw data of `bytes`; dims as in make_value. */
static inline Onnx__TensorProto *make_tensor(Make *mk, const char *name, int type, const char *dims,
                                             const void *data, size_t bytes)
{
    Onnx__TensorProto *t = MAKE_NEW(mk, Onnx__TensorProto, onnx__tensor_proto__init);
    t->name = ls_arena_strdup(mk->cx.arena, name);
    t->has_data_type = true;
    t->data_type = type;
    char *text = ls_arena_strdup(mk->cx.arena, dims), *rest;
    for (char *d = strtok_r(text, "x", &rest); d != NULL; d = strtok_r(NULL, "x", &rest))
        MAKE_PUSH(mk, t->dims, t->n_dims, strtoll(d, NULL, 10));
    t->has_raw_data = true;
    t->raw_data.len = bytes;
    t->raw_data.data = ls_arena_alloc(mk->cx.arena, bytes + 1, 1);
    if (bytes > 0 && data != NULL)
        memcpy(t->raw_data.data, data, bytes);
    return t;
}

/* A float initializer of 0.5, 1.0, 1.5, ... */
static inline Onnx__TensorProto *make_weight(Make *mk, const char *name, const char *dims,
                                             size_t count)
{
    float *data = ls_arena_alloc(mk->cx.arena, count + 1, sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = 0.5f * (float)(i + 1);
    Onnx__TensorProto *t = make_tensor(mk, name, MAKE_FLOAT, dims, data, count * sizeof *data);
    MAKE_PUSH(mk, mk->g->initializer, mk->g->n_initializer, t);
    return t;
}

static inline void make_names(Make *mk, char ***list, size_t *n, const char *names)
{
    for (const char *s = names; s != NULL && *names != '\0'; s = strchr(s, ' ')) {
        s += *s == ' ';
        MAKE_PUSH(mk, *list, *n, ls_arena_printf(mk->cx.arena, "%.*s", (int)strcspn(s, " "), s));
    }
}

/* Names are separated by single blanks; two blanks leave one out. */
static inline Onnx__NodeProto *make_body(Make *mk, const char *op, const char *in, const char *out)
{
    Onnx__NodeProto *p = MAKE_NEW(mk, Onnx__NodeProto, onnx__node_proto__init);
    p->op_type = ls_arena_strdup(mk->cx.arena, op);
    make_names(mk, &p->input, &p->n_input, in);
    make_names(mk, &p->output, &p->n_output, out);
    return p;
}

static inline Onnx__NodeProto *make_node(Make *mk, const char *op, const char *in, const char *out)
{
    Onnx__NodeProto *p = make_body(mk, op, in, out);
    MAKE_PUSH(mk, mk->g->node, mk->g->n_node, p);
    return p;
}

static inline Onnx__AttributeProto *make_attr(Make *mk, Onnx__NodeProto *p, const char *name,
                                              int type)
{
    Onnx__AttributeProto *a = MAKE_NEW(mk, Onnx__AttributeProto, onnx__attribute_proto__init);
    a->name = ls_arena_strdup(mk->cx.arena, name);
    a->has_type = true;
    a->type = type;
    MAKE_PUSH(mk, p->attribute, p->n_attribute, a);
    return a;
}

static inline void make_int(Make *mk, Onnx__NodeProto *p, const char *name, int64_t v)
{
    Onnx__AttributeProto *a = make_attr(mk, p, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = true;
    a->i = v;
}

static inline void make_float(Make *mk, Onnx__NodeProto *p, const char *name, float v)
{
    Onnx__AttributeProto *a = make_attr(mk, p, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = true;
    a->f = v;
}

static inline void make_tensor_attr(Make *mk, Onnx__NodeProto *p, const char *name,
                                    Onnx__TensorProto *t)
{
    make_attr(mk, p, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t = t;
}

/* An entry of metadata_props, in wire form: field `number` of the message (nodes 9, values 4,
 * graphs and tensors 16). Key and value are shorter than 16 KiB. */
static inline void make_meta(Make *mk, ProtobufCMessage *m, uint32_t number, const char *key,
                             const char *value)
{
    const char *text[2] = {key, value};
    unsigned char *p = ls_arena_alloc(mk->cx.arena, strlen(key) + strlen(value) + 16, 1);
    size_t n = 2;               /* the length of all, set below */
    for (int k = 0; k < 2; k++) {
        size_t len = strlen(text[k]);
        p[n++] = (unsigned char)((k + 1) << 3 | 2);
        p[n++] = (unsigned char)(len & 0x7f) | 0x80;
        p[n++] = (unsigned char)(len >> 7);
        memcpy(p + n, text[k], len);
        n += len;
    }
    p[0] = (unsigned char)((n - 2) & 0x7f) | 0x80;
    p[1] = (unsigned char)((n - 2) >> 7);
    ProtobufCMessageUnknownField *u =
        ls_arena_alloc(mk->cx.arena, m->n_unknown_fields + 1, sizeof *u);
    if (m->n_unknown_fields > 0)
        memcpy(u, m->unknown_fields, m->n_unknown_fields * sizeof *u);
    u[m->n_unknown_fields++] = (ProtobufCMessageUnknownField){
        number, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, n, p};
    m->unknown_fields = u;
}

/* A function of the domain "local", without nodes; its calls are of that domain too. */
static inline Onnx__FunctionProto *make_function(Make *mk, const char *name, const char *in,
                                                 const char *out)
{
    Onnx__FunctionProto *f = MAKE_NEW(mk, Onnx__FunctionProto, onnx__function_proto__init);
    f->name = ls_arena_strdup(mk->cx.arena, name);
    f->domain = "local";
    make_names(mk, &f->input, &f->n_input, in);
    make_names(mk, &f->output, &f->n_output, out);
    MAKE_PUSH(mk, mk->m->functions, mk->m->n_functions, f);
    return f;
}

/* The tensor's data are in a typed field, which is empty. */
static inline void make_typed(Onnx__TensorProto *t, int type)
{
    t->has_raw_data = false;
    t->raw_data.len = 0;
    t->data_type = type;
}

/* The tensor's data are in that file, in the model's folder; offset NULL: not said. */
static inline void make_external(Make *mk, Onnx__TensorProto *t, const char *location,
                                 const char *offset)
{
    const char *pair[][2] = {{"location", location}, {"offset", offset}};
    t->has_raw_data = false;
    t->raw_data.len = 0;
    t->has_data_location = true;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    for (int i = 0; i < (offset != NULL ? 2 : 1); i++) {
        Onnx__StringStringEntryProto *e = MAKE_NEW(mk, Onnx__StringStringEntryProto,
                                                   onnx__string_string_entry_proto__init);
        e->key = (char *)pair[i][0];
        e->value = (char *)pair[i][1];
        MAKE_PUSH(mk, t->external_data, t->n_external_data, e);
    }
}

/* A file in the model's folder. */
static inline void make_file(const Make *mk, const char *name, const void *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", mk->dir, name);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static inline void make_write(Make *mk, const void *bytes, size_t n)
{
    FILE *f = fopen(mk->path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static inline size_t make_pack(Make *mk, unsigned char **bytes)
{
    size_t n = onnx__model_proto__get_packed_size(mk->m);
    *bytes = ls_arena_alloc(mk->cx.arena, n + 1, 1);
    return onnx__model_proto__pack(mk->m, *bytes);
}

static inline LsGraph *make_import(Make *mk)
{
    unsigned char *bytes;
    size_t n = make_pack(mk, &bytes);
    make_write(mk, bytes, n);
    return ls_onnx_import(&mk->cx, mk->path, &mk->o);
}

/* y = Relu(x W), x 2x3, W 3x4 */
static inline void make_small(Make *mk)
{
    make_begin(mk, 13);
    make_input(mk, "x", "2x3");
    make_weight(mk, "w", "3x4", 12);
    make_node(mk, "MatMul", "x w", "h");
    make_node(mk, "Relu", "h", "y");
    make_output(mk, "y");
}

#endif
