/* tests/compiler/node_case.c */
#include "tests/compiler/node_case.h"

#include "compiler/onnx/onnx_tensor.h"
#include "compiler/onnx/onnx_wire.h"

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

static Onnx__TensorProto *read_tensor(LsCtx *cx, const char *dir, const char *kind, size_t k)
{
    size_t n;
    unsigned char *bytes = read_file(
        cx->arena, ls_arena_printf(cx->arena, "%s/test_data_set_0/%s_%zu.pb", dir, kind, k), &n);
    ProtobufCAllocator from = ls_wire_allocator(cx->arena);
    return bytes != NULL ? onnx__tensor_proto__unpack(&from, n, bytes) : NULL;
}

/* Inputs to initializers. */
static bool bind_inputs(LsCtx *cx, Onnx__GraphProto *g, const char *dir)
{
    size_t n = g->n_initializer + g->n_input;
    Onnx__TensorProto **all = ls_arena_alloc(cx->arena, n, sizeof *all);
    if (g->n_initializer > 0)
        memcpy(all, g->initializer, g->n_initializer * sizeof *all);
    size_t at = g->n_initializer;
    for (size_t k = 0; k < g->n_input; k++) {
        Onnx__TensorProto *t = read_tensor(cx, dir, "input", k);
        if (t == NULL || g->input[k]->type == NULL
            || g->input[k]->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
            return false;
        t->name = g->input[k]->name;
        all[at++] = t;
    }
    g->initializer = all;
    g->n_initializer = at;
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

bool ls_node_case_read(LsNodeCase *c, LsCtx *cx, const char *dir, const char *work,
                       const char **why)
{
    *c = (LsNodeCase){.cx = cx};
    Onnx__ModelProto *m = ls_onnx_read(cx, ls_arena_printf(cx->arena, "%s/model.onnx", dir));
    cx->parsed = NULL;          /* the code below changes the model */
    *why = "unreadable";
    if (m == NULL || m->graph == NULL)
        return false;
    raise_opset(m);
    *why = "not tensors";
    if (!bind_inputs(cx, m->graph, dir))
        return false;
    c->holder = ls_graph_new(cx);
    c->nexpect = (int)m->graph->n_output;
    c->expect = ls_arena_alloc(cx->arena, m->graph->n_output, sizeof *c->expect);
    for (size_t k = 0; k < m->graph->n_output; k++) {
        Onnx__TensorProto *t = read_tensor(cx, dir, "output", k);
        LsShape shape;
        LsType type;
        if (t == NULL || !ls_onnx_type(t->data_type, &type))
            return false;
        const void *data = ls_tensor_shape(cx, LS_NOWHERE, t, &shape, &type)
            ? ls_tensor_data(cx, LS_NOWHERE, NULL, t) : NULL;
        if (data == NULL)
            return false;
        c->expect[k] = ls_const_add(cx, c->holder, type, &shape, data);
    }
    snprintf(c->model, sizeof c->model, "%s/case.onnx", work);
    *why = "cannot be written";
    return write_model(cx, m, c->model);
}
