/* compiler/onnx_file/onnx_rename.c -- see the header. */
#include "compiler/onnx_file/onnx_rename.h"

#include <string.h>

#include "compiler/onnx_file/onnx_subgraph.h"

void ls_rename_bind(LsRename *r, const char *inner, const char *outer)
{
    uint32_t id = ls_names_add(&r->inner, inner), used = r->outer != NULL ? id : 0;
    r->outer = ls_arena_grow(r->arena, r->outer, used, id + 1, sizeof *r->outer, &r->cap);
    r->outer[id] = outer;
}

const char *ls_rename_fresh(LsRename *r, const char *inner)
{
    const char *base = ls_arena_printf(r->arena, "%s/%s", r->prefix, inner), *fresh = base;
    if (ls_names_find(r->taken, fresh) != 0)
        fresh = ls_arena_printf(r->arena, "%s_", base);
    /* The number of names grows, so the next one is free mostly: thousands of branches may use one
     * name. */
    for (uint32_t k = r->taken->n; ls_names_find(r->taken, fresh) != 0; k++)
        fresh = ls_arena_printf(r->arena, "%s_%u", base, k);
    ls_names_add(r->taken, fresh);
    ls_rename_bind(r, inner, fresh);
    return fresh;
}

const char *ls_rename_name(LsRename *r, const char *inner)
{
    uint32_t id = ls_names_find(&r->inner, inner);
    if (inner[0] == '\0')
        return "";
    if (id != 0 && r->outer[id] != NULL)
        return r->outer[id];
    return r->closed ? ls_rename_fresh(r, inner) : inner;
}

static char **renamed(LsRename *r, char *const *inner, size_t n)
{
    char **outer = ls_arena_alloc(r->arena, n + 1, sizeof *outer);
    for (size_t i = 0; i < n; i++)
        outer[i] = (char *)ls_rename_name(r, ls_text(inner[i]));
    return outer;
}

/* ---- bodies ---- */

static Onnx__ValueInfoProto **renamed_values(LsRename *r, Onnx__ValueInfoProto **list, size_t n)
{
    Onnx__ValueInfoProto **to = ls_arena_alloc(r->arena, n + 1, sizeof *to);
    for (size_t i = 0; i < n; i++) {
        to[i] = ls_arena_alloc(r->arena, 1, sizeof **to);
        *to[i] = *list[i];
        to[i]->name = (char *)ls_rename_name(r, ls_text(list[i]->name));
    }
    return to;
}

static Onnx__TensorProto **renamed_tensors(LsRename *r, Onnx__TensorProto **list, size_t n)
{
    Onnx__TensorProto **to = ls_arena_alloc(r->arena, n + 1, sizeof *to);
    for (size_t i = 0; i < n; i++) {
        to[i] = ls_arena_alloc(r->arena, 1, sizeof **to);
        *to[i] = *list[i];
        to[i]->name = (char *)ls_rename_name(r, ls_text(list[i]->name));
    }
    return to;
}

/* The body's own names hide those of the same spelling outside, so they are bound only
 * meanwhile. */
static Onnx__GraphProto *renamed_body(LsRename *r, const Onnx__GraphProto *g)
{
    LsNames own = {.arena = r->arena};
    ls_subgraph_own(g, &own);
    const char **hidden = ls_arena_alloc(r->arena, own.n + 1, sizeof *hidden);
    for (uint32_t i = 1; i <= own.n; i++) {
        uint32_t id = ls_names_find(&r->inner, own.name[i]);
        hidden[i] = id != 0 ? r->outer[id] : NULL;
        ls_rename_fresh(r, own.name[i]);
    }
    Onnx__GraphProto *to = ls_arena_alloc(r->arena, 1, sizeof *to);
    *to = *g;
    to->input = renamed_values(r, g->input, g->n_input);
    to->output = renamed_values(r, g->output, g->n_output);
    to->initializer = renamed_tensors(r, g->initializer, g->n_initializer);
    to->node = ls_arena_alloc(r->arena, g->n_node + 1, sizeof *to->node);
    for (size_t i = 0; i < g->n_node; i++)
        to->node[i] = ls_rename_node(r, g->node[i]);
    for (uint32_t i = 1; i <= own.n; i++)
        ls_rename_bind(r, own.name[i], hidden[i]);
    return to;
}

static Onnx__AttributeProto *renamed_attribute(LsRename *r, Onnx__AttributeProto *a)
{
    if (r->attribute != NULL)
        a = r->attribute(r->of, a);
    if (a == NULL || a->g == NULL)
        return a;
    Onnx__AttributeProto *to = ls_arena_alloc(r->arena, 1, sizeof *to);
    *to = *a;
    to->g = renamed_body(r, a->g);
    return to;
}

Onnx__NodeProto *ls_rename_node(LsRename *r, const Onnx__NodeProto *node)
{
    Onnx__NodeProto *p = ls_arena_alloc(r->arena, 1, sizeof *p);
    *p = *node;
    p->input = renamed(r, node->input, node->n_input);
    p->output = renamed(r, node->output, node->n_output);
    p->attribute = ls_arena_alloc(r->arena, node->n_attribute + 1, sizeof *p->attribute);
    p->n_attribute = 0;
    for (size_t i = 0; i < node->n_attribute; i++) {
        Onnx__AttributeProto *a = renamed_attribute(r, node->attribute[i]);
        if (a != NULL)
            p->attribute[p->n_attribute++] = a;
    }
    return p;
}
