/* compiler/onnx/onnx_retie.c -- turns a constant that an exporter folded from a remaining parameter back into a node.
 * Trained by itself, the constant would be a second parameter. Models whose output layer is the transposed token table
 * are exported so. */
#include "compiler/onnx/onnx_retie.h"

#include <string.h>

#include "compiler/onnx/onnx_meta.h"
#include "compiler/onnx/onnx_wire.h"

/* The only initializer of reals among the names that t was folded from; NULL: none, or several. */
static const Onnx__TensorProto *only_origin(LsEditor *u, const Onnx__TensorProto *t)
{
    const char *list = ls_onnx_source(u->s, ls_text(t->name))->folded_from, *name;
    const Onnx__TensorProto *found = NULL;
    while (list != NULL && (name = ls_meta_item(u->cx->arena, &list)) != NULL) {
        const Onnx__TensorProto *of = ls_edit_real(u, name);
        if (of != NULL && found != NULL)
            return NULL;
        found = of != NULL ? of : found;
    }
    return found;
}

typedef enum { OTHER, RESHAPED, TRANSPOSED } Form;

static Form form_of(LsEditor *u, const Onnx__TensorProto *t, const Onnx__TensorProto *of)
{
    int64_t n = ls_edit_count(t);
    if (n < 1 || n != ls_edit_count(of))
        return OTHER;
    const float *a = ls_edit_data(u, of), *b = ls_edit_data(u, t);
    if (a == NULL || b == NULL)
        return OTHER;
    if (memcmp(a, b, (size_t)n * sizeof *a) == 0)
        return RESHAPED;
    if (of->n_dims != 2 || t->n_dims != 2 || of->dims[0] != t->dims[1] || of->dims[1] != t->dims[0])
        return OTHER;
    int64_t rows = of->dims[0], columns = of->dims[1];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            if (memcmp(&a[i * columns + j], &b[j * rows + i], sizeof *a) != 0)
                return OTHER;
    return TRANSPOSED;
}

static Onnx__NodeProto *copy_node(LsEditor *u, const char *op, const char *from, char *to, size_t nin)
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

static void add_in_front(LsEditor *u, Onnx__NodeProto *p)
{
    Onnx__GraphProto *g = u->g;
    Onnx__NodeProto **list = ls_arena_alloc(u->cx->arena, g->n_node + 1, sizeof *list);
    list[0] = p;
    memcpy(list + 1, g->node, g->n_node * sizeof *list);
    g->node = list;
    g->n_node++;
}

static void compute(LsEditor *u, Onnx__TensorProto *t, const Onnx__TensorProto *of, Form form)
{
    LsArena *a = u->cx->arena;
    bool turn = form == TRANSPOSED;
    Onnx__NodeProto *p = copy_node(u, turn ? "Transpose" : "Reshape", of->name, t->name, turn ? 1 : 2);
    if (!turn) {                /* attribute: the shape; a transposition of a matrix needs none */
        Onnx__TensorProto *shape = ls_arena_alloc(a, 1, sizeof *shape);
        onnx__tensor_proto__init(shape);
        shape->name = (char *)ls_edit_fresh(u, ls_arena_printf(a, "%s.shape", t->name));
        shape->has_data_type = true;
        shape->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
        shape->n_dims = 1;
        shape->dims = ls_arena_alloc(a, 1, sizeof *shape->dims);
        shape->dims[0] = (int64_t)t->n_dims;
        shape->n_int64_data = t->n_dims;
        shape->int64_data = t->dims;
        ls_edit_add_initializer(u, shape);
        p->input[1] = shape->name;
    }
    add_in_front(u, p);
}

static void drop_initializer(LsEditor *u, const Onnx__TensorProto *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < u->g->n_initializer; i++)
        if (u->g->initializer[i] != t)
            u->g->initializer[kept++] = u->g->initializer[i];
    u->g->n_initializer = kept;
}

void ls_onnx_retie(LsEditor *u)
{
    LsOnnxEdits *e = u->e;
    for (uint32_t id = 1; id < u->nid; id++) {
        Onnx__TensorProto *t = u->real[id];
        const Onnx__TensorProto *of = t != NULL ? only_origin(u, t) : NULL;
        Form form = of != NULL && of != t ? form_of(u, t, of) : OTHER;
        if (form == OTHER)
            continue;
        u->real[id] = NULL;
        drop_initializer(u, t);
        compute(u, t, of, form);
        ls_edit_note(u, &e->retied, &e->nretied, &e->cap_retied, t->name, of->name);
    }
}
