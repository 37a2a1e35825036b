/* tests/compiler/node_case.c */
#include "tests/compiler/node_case.h"

#include "compiler/onnx_file/onnx_tensor.h"
#include "compiler/onnx_file/onnx_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *read_file(LsArena *a, const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = ls_arena_alloc(a, *n + 1, 1);
    bool ok = fread(bytes, 1, *n, f) == *n;
    fclose(f);
    return ok ? bytes : NULL;
}

/* ---- operands and results: a tensor, a sequence of tensors, or an optional value, which may be
 * empty ---- */

typedef struct Data {
    bool list, optional;
    Onnx__TensorProto **item; size_t n;         /* a tensor: the only one */
} Data;

typedef enum { IS_TENSOR, IS_SEQUENCE, IS_OPTIONAL } DataKind;

static DataKind kind_of(const Onnx__ValueInfoProto *v)
{
    if (v->type == NULL || v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return IS_TENSOR;
    return v->type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE ? IS_SEQUENCE : IS_OPTIONAL;
}

static bool add_item(LsCtx *cx, Data *d, const unsigned char *p, size_t n)
{
    ProtobufCAllocator from = ls_wire_allocator(cx->arena);
    Onnx__TensorProto **more = ls_arena_alloc(cx->arena, d->n + 1, sizeof *more);
    if (d->n > 0)
        memcpy(more, d->item, d->n * sizeof *more);
    d->item = more;
    return (d->item[d->n++] = onnx__tensor_proto__unpack(&from, n, p)) != NULL;
}

/* SequenceProto: tensor_values is 3. OptionalProto: tensor_value is 3, sequence_value 5. */
static bool read_data(LsCtx *cx, Data *d, DataKind kind, const unsigned char *p, size_t n)
{
    const unsigned char *end = p + n;
    if (kind == IS_TENSOR)
        return add_item(cx, d, p, n);
    d->list |= kind == IS_SEQUENCE;
    d->optional |= kind == IS_OPTIONAL;
    bool good = true;
    for (LsWireField f; good && ls_wire_next(&p, end, &f);)
        if (f.number == 3)
            good = add_item(cx, d, f.data, f.len);
        else if (f.number == 5 && kind == IS_OPTIONAL)
            good = read_data(cx, d, IS_SEQUENCE, f.data, f.len);
    return good && p != NULL;
}

static bool read_value(LsCtx *cx, Data *d, const char *dir, const char *which, size_t k,
                       const Onnx__ValueInfoProto *v)
{
    size_t n;
    unsigned char *bytes = read_file(
        cx->arena, ls_arena_printf(cx->arena, "%s/test_data_set_0/%s_%zu.pb", dir, which, k), &n);
    *d = (Data){0};
    return bytes != NULL && read_data(cx, d, kind_of(v), bytes, n);
}

static Onnx__NodeProto *new_node(LsCtx *cx, const char *op, char **in, size_t nin, char *out)
{
    Onnx__NodeProto *p = ls_arena_alloc(cx->arena, 1, sizeof *p);
    onnx__node_proto__init(p);
    p->op_type = ls_arena_strdup(cx->arena, op);
    p->input = in;
    p->n_input = nin;
    p->output = ls_arena_alloc(cx->arena, 1, sizeof *p->output);
    p->output[p->n_output++] = out;
    return p;
}

static void add_node(LsCtx *cx, Onnx__GraphProto *g, Onnx__NodeProto *p, bool first)
{
    Onnx__NodeProto **all = ls_arena_alloc(cx->arena, g->n_node + 1, sizeof *all);
    if (g->n_node > 0)
        memcpy(all + first, g->node, g->n_node * sizeof *all);
    all[first ? 0 : g->n_node] = p;
    g->node = all;
    g->n_node++;
}

static void add_initializer(LsCtx *cx, Onnx__GraphProto *g, Onnx__TensorProto *t)
{
    Onnx__TensorProto **all = ls_arena_alloc(cx->arena, g->n_initializer + 1, sizeof *all);
    if (g->n_initializer > 0)
        memcpy(all, g->initializer, g->n_initializer * sizeof *all);
    all[g->n_initializer++] = t;
    g->initializer = all;
}

/* An initializer; for a sequence or an optional value, initializers and a node that makes it of
 * them. */
static void bind_input(LsCtx *cx, Onnx__GraphProto *g, char *name, const Data *d)
{
    bool plain = !d->list && !d->optional;
    char **item = ls_arena_alloc(cx->arena, d->n + 1, sizeof *item);
    for (size_t k = 0; k < d->n; k++) {
        item[k] = plain ? name : ls_arena_printf(cx->arena, "%s.%zu", name, k);
        d->item[k]->name = item[k];
        add_initializer(cx, g, d->item[k]);
    }
    const char *op = d->list && d->n == 0 ? "SequenceEmpty"
                     : d->list            ? "SequenceConstruct"
                                          : "Optional";
    if (!plain)
        add_node(cx, g, new_node(cx, op, item, d->n, name), true);
}

static bool bind_inputs(LsCtx *cx, Onnx__GraphProto *g, const char *dir)
{
    for (size_t k = 0; k < g->n_input; k++) {
        Data d;
        if (!read_value(cx, &d, dir, "input", k, g->input[k]))
            return false;
        bind_input(cx, g, g->input[k]->name, &d);
    }
    g->n_input = 0;
    return true;
}

/* Operators whose definition is older than the supported opsets: their tests state an old opset. */
static void raise_opset(Onnx__ModelProto *m)
{
    enum { OLDEST_READ = 8 };
    for (size_t k = 0; k < m->n_opset_import; k++)
        if (m->opset_import[k]->version < OLDEST_READ && m->opset_import[k]->version >= 1)
            m->opset_import[k]->version = OLDEST_READ;
}

static bool write_model(LsCtx *cx, const Onnx__ModelProto *m, const char *path)
{
    size_t n = onnx__model_proto__get_packed_size(m);
    unsigned char *bytes = ls_arena_alloc(cx->arena, n + 1, 1);
    onnx__model_proto__pack(m, bytes);
    FILE *f = fopen(path, "wb");
    bool ok = f != NULL && fwrite(bytes, 1, n, f) == n;
    if (f != NULL)
        ok &= fclose(f) == 0;
    return ok;
}

/* ---- expected results ---- */

typedef struct Results { LsNodeCase *c; Onnx__ValueInfoProto **output; size_t n; } Results;

enum { MAX_RESULTS = 64 };

static bool expect_tensor(Results *r, char *name, const Onnx__TensorProto *t)
{
    LsCtx *cx = r->c->cx;
    LsShape shape;
    LsType type;
    if (t == NULL || r->n == MAX_RESULTS || !ls_onnx_type(t->data_type, &type))
        return false;
    const void *data = ls_tensor_shape(cx, LS_NOWHERE, t, &shape, &type)
        ? ls_tensor_data(cx, LS_NOWHERE, NULL, t) : NULL;
    if (data == NULL)
        return false;
    r->output[r->n] = ls_arena_alloc(cx->arena, 1, sizeof **r->output);
    onnx__value_info_proto__init(r->output[r->n]);
    r->output[r->n]->name = name;
    r->c->expect[r->n++] = ls_const_add(cx, r->c->holder, type, &shape, data);
    return true;
}

/* A scalar as TensorProto; also an initializer of the graph. */
static Onnx__TensorProto *number(LsCtx *cx, char *name, int type, int64_t v)
{
    Onnx__TensorProto *t = ls_arena_alloc(cx->arena, 1, sizeof *t);
    onnx__tensor_proto__init(t);
    t->name = name;
    t->has_data_type = t->has_raw_data = true;
    t->data_type = type;
    t->raw_data.len = type == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL ? 1 : sizeof v;
    t->raw_data.data = memcpy(ls_arena_alloc(cx->arena, 1, sizeof v), &v, sizeof v);
    return t;
}

/* A result that is no tensor is read by nodes whose results are: whether it is there, its length,
 * its items. */
static bool expect_list(Results *r, Onnx__GraphProto *g, char *name, const Data *d)
{
    enum {
        BOOL = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL,
        INT64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64
    };
    LsCtx *cx = r->c->cx;
    char **of = ls_arena_alloc(cx->arena, 1, sizeof *of);
    of[0] = name;
    if (d->optional) {
        char *has = ls_arena_printf(cx->arena, "%s.has", name);
        add_node(cx, g, new_node(cx, "OptionalHasElement", of, 1, has), false);
        if (!expect_tensor(r, has, number(cx, has, BOOL, d->list || d->n > 0)))
            return false;
    }
    if (d->list) {
        char *length = ls_arena_printf(cx->arena, "%s.length", name);
        add_node(cx, g, new_node(cx, "SequenceLength", of, 1, length), false);
        if (!expect_tensor(r, length, number(cx, length, INT64, (int64_t)d->n)))
            return false;
    }
    bool good = true;
    for (size_t k = 0; k < d->n && good; k++) {
        char *item = ls_arena_printf(cx->arena, "%s.%zu", name, k);
        char **in = ls_arena_alloc(cx->arena, 2, sizeof *in);
        in[0] = name;
        in[1] = ls_arena_printf(cx->arena, "%s.at%zu", name, k);
        if (d->list)
            add_initializer(cx, g, number(cx, in[1], INT64, (int64_t)k));
        add_node(cx, g, new_node(cx, d->list ? "SequenceAt" : "OptionalGetElement", in,
                                 d->list ? 2 : 1, item), false);
        good = expect_tensor(r, item, d->item[k]);
    }
    return good;
}

static bool read_results(LsNodeCase *c, Onnx__GraphProto *g, const char *dir)
{
    Results r = {.c = c, .output = ls_arena_alloc(c->cx->arena, MAX_RESULTS, sizeof *r.output)};
    c->expect = ls_arena_alloc(c->cx->arena, MAX_RESULTS, sizeof *c->expect);
    for (size_t k = 0; k < g->n_output; k++) {
        Data d;
        if (!read_value(c->cx, &d, dir, "output", k, g->output[k]))
            return false;
        bool plain = !d.list && !d.optional;
        size_t at = r.n;
        if (plain ? !expect_tensor(&r, g->output[k]->name, d.item[0])
                  : !expect_list(&r, g, g->output[k]->name, &d))
            return false;
        if (plain)
            r.output[at] = g->output[k];
    }
    g->output = r.output;
    g->n_output = r.n;
    c->nexpect = (int)r.n;
    return true;
}

/* Whether the value is one of those types; counts floats. */
static bool is_common(const Onnx__ValueInfoProto *v, int *floats)
{
    if (v->type == NULL || v->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return false;
    int type = v->type->tensor_type->elem_type;
    *floats += type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    return type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT
           || type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64
           || type == ONNX__TENSOR_PROTO__DATA_TYPE__INT32
           || type == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
}

static bool in_floats(const Onnx__GraphProto *g)
{
    int floats = 0;
    bool common = true;
    for (size_t k = 0; k < g->n_input; k++)
        common &= is_common(g->input[k], &floats);
    for (size_t k = 0; k < g->n_output; k++)
        common &= is_common(g->output[k], &floats);
    return common && floats > 0;
}

bool ls_node_case_read(LsNodeCase *c, LsCtx *cx, const char *dir, const char *work,
                       const char **why)
{
    *c = (LsNodeCase){.cx = cx, .op = ""};
    Onnx__ModelProto *m = ls_onnx_read(cx, ls_arena_printf(cx->arena, "%s/model.onnx", dir));
    cx->parsed = NULL;          /* the code below changes the model */
    *why = "unreadable";
    if (m == NULL || m->graph == NULL)
        return false;
    if (m->graph->n_node > 0)
        c->op = ls_text(m->graph->node[m->graph->n_node - 1]->op_type);
    c->in_floats = in_floats(m->graph);
    raise_opset(m);
    *why = "not tensors";
    if (!bind_inputs(cx, m->graph, dir))
        return false;
    c->holder = ls_graph_new(cx);
    if (!read_results(c, m->graph, dir))
        return false;
    snprintf(c->model, sizeof c->model, "%s/case.onnx", work);
    *why = "cannot be written";
    return write_model(cx, m, c->model);
}
