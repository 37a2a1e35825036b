/* compiler/onnx/onnx_infer_form.c -- rewrites training-mode BatchNormalization and Dropout to their
 * inference form.
 *
 * Batch norm keeps only its first result, which means inference in every opset; readers of the
 * updated running statistics get the statistics themselves. Dropout loses its training_mode operand
 * (opset 12 on); before that opset every runtime treats it as the identity.
 *
 * In a model that was made float32 throughout, a Cast to 16 bits still rounds: a second Cast
 * follows it, to float. */
#include "compiler/onnx/onnx_infer_form.h"

#include "base/name_ids.h"
#include "compiler/onnx_file/onnx_domain.h"
#include "compiler/onnx/onnx_model.h"
#include "compiler/onnx_file/onnx_subgraph.h"

#include <string.h>

typedef struct Body {           /* of the graph, of a function, or of a node */
    LsArena *arena;
    Onnx__NodeProto ***node;
    size_t *nnode;
    LsNames read;               /* names that have a reader */
    LsNames *rounding;          /* all names of the model, if its casts to 16 bits only round; else
                                 * NULL */
} Body;

static void drop_attribute(Onnx__NodeProto *p, const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->n_attribute; i++)
        if (strcmp(ls_text(p->attribute[i]->name), name) != 0)
            p->attribute[kept++] = p->attribute[i];
    p->n_attribute = kept;
}

/* A node with one operand and one result. */
static Onnx__NodeProto *unary(LsArena *a, const char *op, char *from, char *to)
{
    Onnx__NodeProto *p = ls_arena_alloc(a, 1, sizeof *p);
    onnx__node_proto__init(p);
    p->op_type = ls_arena_strdup(a, op);
    p->n_input = p->n_output = 1;
    p->input = ls_arena_alloc(a, 1, sizeof *p->input);
    p->output = ls_arena_alloc(a, 1, sizeof *p->output);
    p->input[0] = from;
    p->output[0] = to;
    return p;
}

static Onnx__AttributeProto *to_16_bits(const Onnx__NodeProto *p)
{
    for (size_t i = 0; i < p->n_attribute; i++)
        if (strcmp(ls_text(p->attribute[i]->name), "to") == 0
            && (p->attribute[i]->i == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16
                || p->attribute[i]->i == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16))
            return p->attribute[i];
    return NULL;
}

/* The Cast that follows Cast p to 16 bits and takes over the name of its result. */
static Onnx__NodeProto *widened(Body *b, Onnx__NodeProto *p)
{
    char *name = p->output[0];
    char *narrow = (char *)ls_arena_printf(b->arena, "%s.rounded", name);
    while (ls_names_find(b->rounding, narrow) != 0)
        narrow = (char *)ls_arena_printf(b->arena, "%s_", narrow);
    ls_names_add(b->rounding, narrow);
    p->output[0] = narrow;
    Onnx__NodeProto *wide = unary(b->arena, "Cast", narrow, name);
    Onnx__AttributeProto *to = ls_arena_alloc(b->arena, 1, sizeof *to);
    *to = *to_16_bits(p);
    to->i = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    wide->n_attribute = 1;
    wide->attribute = ls_arena_alloc(b->arena, 1, sizeof *wide->attribute);
    wide->attribute[0] = to;
    return wide;
}

/* Appends to `to` the replacement of node p; at most 5 nodes. */
static size_t rewrite(Body *b, Onnx__NodeProto *p, Onnx__NodeProto **to)
{
    const char *op = ls_onnx_domain(p->domain)[0] == '\0' ? ls_text(p->op_type) : "";
    size_t n = 0;
    to[n++] = p;
    if (strcmp(op, "Dropout") == 0 && p->n_input > 2)
        p->n_input = 2;
    if (strcmp(op, "Cast") == 0 && b->rounding != NULL && p->n_output == 1 && to_16_bits(p) != NULL)
        to[n++] = widened(b, p);
    if (strcmp(op, "BatchNormalization") != 0 || p->n_input != 5 || p->n_output == 0)
        return n;
    drop_attribute(p, "training_mode");
    for (size_t k = 1; k < p->n_output && k < 5; k++)       /* mean, var, saved mean, saved var */
        if (ls_names_find(&b->read, ls_text(p->output[k])) != 0)
            to[n++] = unary(b->arena, "Identity", p->input[k % 2 == 1 ? 3 : 4], p->output[k]);
    p->n_output = 1;
    return n;
}

static void rewrite_graph(LsArena *a, Onnx__GraphProto *g, LsNames *rounding);

static void rewrite_body(Body *b, char *const *output, size_t noutput)
{
    size_t n = 0;
    b->read = (LsNames){.arena = b->arena};
    for (size_t i = 0; i < noutput; i++)
        ls_names_add(&b->read, output[i]);
    for (size_t i = 0; i < *b->nnode; i++) {
        const Onnx__NodeProto *p = (*b->node)[i];
        for (size_t k = 0; k < p->n_input; k++)
            if (ls_text(p->input[k])[0] != '\0')
                ls_names_add(&b->read, p->input[k]);
        ls_subgraph_captures(p, &b->read);
        for (size_t k = 0; k < p->n_attribute; k++)
            if (p->attribute[k]->g != NULL)
                rewrite_graph(b->arena, p->attribute[k]->g, b->rounding);
    }
    Onnx__NodeProto **list = ls_arena_alloc(b->arena, *b->nnode + 1, 5 * sizeof *list);
    for (size_t i = 0; i < *b->nnode; i++)
        n += rewrite(b, (*b->node)[i], list + n);
    *b->node = list;
    *b->nnode = n;
}

static void rewrite_graph(LsArena *a, Onnx__GraphProto *g, LsNames *rounding)
{
    char **output = ls_arena_alloc(a, g->n_output + 1, sizeof *output);
    for (size_t i = 0; i < g->n_output; i++)
        output[i] = (char *)ls_text(g->output[i]->name);
    Body graph = {.arena = a, .node = &g->node, .nnode = &g->n_node, .rounding = rounding};
    rewrite_body(&graph, output, g->n_output);
}

void ls_onnx_infer_form(LsArena *a, Onnx__ModelProto *m, LsNames *rounding)
{
    rewrite_graph(a, m->graph, rounding);
    for (size_t i = 0; i < m->n_functions; i++) {
        Onnx__FunctionProto *f = m->functions[i];
        Body body = {.arena = a, .node = &f->node, .nnode = &f->n_node, .rounding = rounding};
        rewrite_body(&body, f->output, f->n_output);
    }
}
