/* compiler/onnx_repair/file_edit.c -- see the header. */
#include "compiler/onnx_repair/file_edit.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/onnx_file/onnx_subgraph.h"
#include "compiler/onnx_file/onnx_wire.h"

Onnx__TensorProto *ls_edit_real(const LsEditor *u, const char *name)
{
    uint32_t id = ls_names_find(&u->names, name);
    return id < u->nid ? u->real[id] : NULL;
}

uint32_t ls_edit_reads(const LsEditor *u, const char *name)
{
    uint32_t id = ls_names_find(&u->names, name);
    return id < u->nid ? u->reads[id] : 0;
}

int64_t ls_edit_count(const Onnx__TensorProto *t)
{
    int64_t n = 1;
    for (size_t k = 0; k < t->n_dims; k++)
        if (t->dims[k] < 0 || __builtin_mul_overflow(n, t->dims[k], &n))
            return 0;
    return n;
}

const LsFileReal *ls_edit_data(LsEditor *u, const Onnx__TensorProto *t)
{
    LsCtx quiet = {.arena = u->cx->arena, .max_error = 1, .nerror = 1, /* the import reports it */
                   .packed = u->cx->packed};
    LsShape shape;
    LsType type;
    if (!ls_tensor_shape(&quiet, LS_NOWHERE, t, &shape, &type) || type != LS_REAL)
        return NULL;
    return ls_tensor_reals(&quiet, LS_NOWHERE, &u->data, t);
}

bool ls_edit_reals(LsEditor *u, const Onnx__TensorProto *t, LsReals *r)
{
    LsCtx quiet = {.arena = u->cx->arena, .max_error = 1, .nerror = 1};
    return ls_reals_open(r, &quiet, LS_NOWHERE, &u->data, t);
}

bool ls_edit_differs_within(LsEditor *u, const Onnx__TensorProto *t)
{
    LsReals r;
    bool differ = false;
    if (!ls_edit_reals(u, t, &r) || r.count == 0)
        return false;
    const float first = ls_reals_at(&r, 0);
    for (int64_t at = 0, n; at < r.count && !differ; at += n) {
        const LsFileReal *v = ls_reals_from(&r, at, &n);
        for (int64_t i = 0; i < n && !differ; i++)
            differ = v[i] != first;
    }
    ls_reals_let_go(&r);
    return differ;
}

/* The number of the next name like that of id. Thousands of names may be alike. */
static uint32_t *suffix_of(LsEditor *u, uint32_t id)
{
    if (id >= u->nsuffix) {
        const uint32_t n = u->names.n + 1;
        u->suffix = ls_arena_regrow(u->scratch, u->suffix, u->nsuffix, n, sizeof *u->suffix,
                                    &u->cap_suffix);
        memset(u->suffix + u->nsuffix, 0, (n - u->nsuffix) * sizeof *u->suffix);
        u->nsuffix = n;
    }
    return &u->suffix[id];
}

const char *ls_edit_fresh(LsEditor *u, const char *like)
{
    const char *name = like;
    const uint32_t id = ls_names_find(&u->names, like);
    for (uint32_t k = id != 0 ? *suffix_of(u, id) : 0; ls_names_find(&u->names, name) != 0; k++) {
        name = ls_arena_printf(u->cx->arena, "%s.%u", like, k + 2);
        *suffix_of(u, id) = k + 1;
    }
    ls_names_add(&u->names, name);
    return name;
}

void ls_edit_note(LsEditor *u, LsUntied **list, uint32_t *n, uint32_t *cap, const char *name,
                  const char *from)
{
    *list = ls_arena_grow(u->cx->arena, *list, *n, *n + 1, sizeof **list, cap);
    (*list)[(*n)++] = (LsUntied){name, from};
}

void ls_edit_add_initializer(LsEditor *u, Onnx__TensorProto *t)
{
    Onnx__GraphProto *g = u->g;
    const size_t n = g->n_initializer;
    g->initializer = ls_arena_grow(u->cx->arena, g->initializer, n, n + 1, sizeof *g->initializer,
                                   &u->cap_initializer);
    g->initializer[g->n_initializer++] = t;
}

void ls_edit_index(LsEditor *u)
{
    const Onnx__GraphProto *g = u->g;
    u->scratch = u->names.arena = ls_arena_new();
    for (size_t i = 0; i < g->n_initializer; i++)
        ls_names_add(&u->names, ls_text(g->initializer[i]->name));
    for (size_t i = 0; i < g->n_input; i++)
        ls_names_add(&u->names, ls_text(g->input[i]->name));
    for (size_t i = 0; i < g->n_node; i++) {
        for (size_t k = 0; k < g->node[i]->n_input; k++)
            ls_names_add(&u->names, ls_text(g->node[i]->input[k]));
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            ls_names_add(&u->names, ls_text(g->node[i]->output[k]));
        ls_subgraph_captures(g->node[i], &u->names);
        ls_subgraph_names(g->node[i], &u->names);
    }
    u->nid = u->names.n + 1;
    u->real = ls_arena_alloc(u->scratch, u->nid, sizeof *u->real);
    u->reads = ls_arena_alloc(u->scratch, u->nid, sizeof *u->reads);
    u->maker = ls_arena_alloc(u->scratch, u->nid, sizeof *u->maker);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            u->maker[ls_names_find(&u->names, ls_text(g->node[i]->output[k]))] = g->node[i];
    for (size_t i = 0; i < g->n_initializer; i++)
        if (ls_onnx_type_is_float(g->initializer[i]->data_type))
            u->real[ls_names_find(&u->names, ls_text(g->initializer[i]->name))] = g->initializer[i];
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_input; k++)
            u->reads[ls_names_find(&u->names, ls_text(g->node[i]->input[k]))]++;
    for (size_t i = 0; i < g->n_node; i++) {
        if (!ls_subgraph_any(g->node[i]))
            continue;
        LsNames captured = {.arena = ls_arena_new()};
        ls_subgraph_captures(g->node[i], &captured);
        for (uint32_t k = 1; k <= captured.n; k++)
            u->reads[ls_names_find(&u->names, captured.name[k])]++;
        ls_arena_free(captured.arena);
    }
    for (size_t i = 0; i < g->n_output; i++)
        u->reads[ls_names_find(&u->names, ls_text(g->output[i]->name))]++;
}

Onnx__NodeProto *ls_edit_node(LsEditor *u, const char *op, const char *from, char *to, size_t nin)
{
    LsArena *a = u->cx->arena;
    Onnx__NodeProto *p = ls_arena_alloc(a, 1, sizeof *p);
    onnx__node_proto__init(p);
    p->op_type = ls_arena_strdup(a, op);
    p->name = to;
    p->input = ls_arena_alloc(a, 2, sizeof *p->input);
    p->output = ls_arena_alloc(a, 1, sizeof *p->output);
    p->n_input = nin;
    p->n_output = 1;
    p->input[0] = ls_arena_strdup(a, from);
    p->output[0] = to;
    return p;
}

void ls_edit_add_in_front(LsEditor *u, Onnx__NodeProto *p)
{
    Onnx__GraphProto *g = u->g;
    if (u->free_in_front == 0) {
        const size_t more = g->n_node + 16;
        Onnx__NodeProto **list = ls_arena_alloc(u->cx->arena, more + g->n_node, sizeof *list);
        memcpy(list + more, g->node, g->n_node * sizeof *list);
        g->node = list + more;
        u->free_in_front = (uint32_t)more;
    }
    *--g->node = p;
    u->free_in_front--;
    g->n_node++;
}

void ls_edit_drop_initializer(LsEditor *u, Onnx__TensorProto *t)
{
    u->dropped = ls_arena_regrow(u->scratch, u->dropped, u->ndropped, u->ndropped + 1,
                                 sizeof *u->dropped, &u->cap_dropped);
    u->dropped[u->ndropped++] = t;
}

static int by_address(const void *x, const void *y)
{
    Onnx__TensorProto *const *a = x, *const *b = y;
    return *a < *b ? -1 : *a > *b;
}

void ls_edit_finish(LsEditor *u)
{
    Onnx__GraphProto *g = u->g;
    size_t kept = 0;
    if (u->ndropped > 0)        /* sorted for the look-up alone */
        qsort(u->dropped, u->ndropped, sizeof *u->dropped, by_address);
    for (size_t i = 0; i < g->n_initializer; i++)
        if (u->ndropped == 0
            || bsearch(&g->initializer[i], u->dropped, u->ndropped, sizeof *u->dropped, by_address)
                   == NULL)
            g->initializer[kept++] = g->initializer[i];
    g->n_initializer = kept;
    ls_arena_free(u->scratch);
}
