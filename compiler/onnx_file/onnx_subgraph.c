/* compiler/onnx_file/onnx_subgraph.c -- see the header. */
#include "compiler/onnx_file/onnx_subgraph.h"

#include <string.h>

const Onnx__GraphProto *ls_subgraph(const Onnx__NodeProto *node, const char *attribute)
{
    const Onnx__AttributeProto *a = ls_onnx_attribute(node, attribute);
    return a != NULL ? a->g : NULL;
}

bool ls_subgraph_any(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->g != NULL)
            return true;
    return false;
}

static void add(LsNames *to, const char *name)
{
    if (ls_text(name)[0] != '\0')
        ls_names_add(to, name);
}

void ls_subgraph_own(const Onnx__GraphProto *g, LsNames *to)
{
    for (size_t i = 0; i < g->n_input; i++)
        add(to, g->input[i]->name);
    for (size_t i = 0; i < g->n_initializer; i++)
        add(to, g->initializer[i]->name);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            add(to, g->node[i]->output[k]);
}

/* ---- reads from outside ---- */

typedef struct Scope { const LsNames *own; const struct Scope *outer; } Scope;

typedef struct Walk {
    LsArena *arena;
    void (*visit)(void *of, const Onnx__NodeProto *reader, size_t k);
    void (*result)(void *of, const char *name);         /* a result of a body that the body does not
                                                         * make; or NULL */
    void *of;
} Walk;

static bool is_own(const Scope *s, const char *name)
{
    for (; s != NULL; s = s->outer)
        if (ls_names_find(s->own, name) != 0)
            return true;
    return false;
}

static void walk_bodies(const Walk *w, const Onnx__NodeProto *node, const Scope *outer);

static void walk_body(const Walk *w, const Onnx__GraphProto *g, const Scope *outer)
{
    LsNames own = {.arena = w->arena};
    ls_subgraph_own(g, &own);
    const Scope here = {&own, outer};
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *p = g->node[i];
        for (size_t k = 0; k < p->n_input; k++)
            if (ls_text(p->input[k])[0] != '\0' && !is_own(&here, p->input[k]))
                w->visit(w->of, p, k);
        walk_bodies(w, p, &here);
    }
    for (size_t i = 0; w->result != NULL && i < g->n_output; i++)
        if (ls_text(g->output[i]->name)[0] != '\0' && !is_own(&here, g->output[i]->name))
            w->result(w->of, g->output[i]->name);
}

static void walk_bodies(const Walk *w, const Onnx__NodeProto *node, const Scope *outer)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->g != NULL)
            walk_body(w, node->attribute[i]->g, outer);
}

/* Files may have very many bodies: their names are forgotten after each node. */
static void walk_node(Walk w, const Onnx__NodeProto *node)
{
    w.arena = ls_arena_new();
    walk_bodies(&w, node, NULL);
    ls_arena_free(w.arena);
}

void ls_subgraph_reads(const Onnx__NodeProto *node,
                       void (*visit)(void *of, const Onnx__NodeProto *reader, size_t k), void *of)
{
    if (ls_subgraph_any(node))
        walk_node((Walk){.visit = visit, .of = of}, node);
}

static void take_operand(void *of, const Onnx__NodeProto *reader, size_t k)
{
    add(of, reader->input[k]);
}

static void take_result(void *of, const char *name) { add(of, name); }

void ls_subgraph_captures(const Onnx__NodeProto *node, LsNames *to)
{
    if (ls_subgraph_any(node))
        walk_node((Walk){.visit = take_operand, .result = take_result, .of = to}, node);
}

static void add_all(const Onnx__GraphProto *g, LsNames *to)
{
    ls_subgraph_own(g, to);
    for (size_t i = 0; i < g->n_node; i++)
        ls_subgraph_names(g->node[i], to);
}

void ls_subgraph_names(const Onnx__NodeProto *node, LsNames *to)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->g != NULL)
            add_all(node->attribute[i]->g, to);
}

/* ---- initializers of bodies ---- */

typedef struct Hoist {
    LsArena *arena;
    Onnx__GraphProto *g;
    LsNames names;
    uint32_t *makers, cap;      /* by name id: graphs that define the name */
    size_t cap_list;
} Hoist;

static void count_names(Hoist *h, const Onnx__GraphProto *g)
{
    LsNames own = {.arena = ls_arena_new()};
    ls_subgraph_own(g, &own);
    for (uint32_t i = 1; i <= own.n; i++) {
        uint32_t used = h->makers != NULL ? h->names.n + 1 : 0;
        uint32_t id = ls_names_add(&h->names, own.name[i]);
        h->makers = ls_arena_grow(h->arena, h->makers, used, h->names.n + 1, sizeof *h->makers,
                                  &h->cap);
        if (h->names.n + 1 > used)
            h->makers[id] = 0;
        h->makers[id]++;
    }
    ls_arena_free(own.arena);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_attribute; k++)
            if (g->node[i]->attribute[k]->g != NULL)
                count_names(h, g->node[i]->attribute[k]->g);
}

/* Replaces a name in the body, and in bodies inside it that do not define the name themselves. */
static void replace(Onnx__GraphProto *g, const char *from, char *to)
{
    for (size_t i = 0; i < g->n_output; i++)
        if (strcmp(ls_text(g->output[i]->name), from) == 0)
            g->output[i]->name = to;
    for (size_t i = 0; i < g->n_node; i++) {
        Onnx__NodeProto *p = g->node[i];
        for (size_t k = 0; k < p->n_input; k++)
            if (strcmp(ls_text(p->input[k]), from) == 0)
                p->input[k] = to;
        for (size_t k = 0; k < p->n_attribute; k++) {
            if (p->attribute[k]->g == NULL)
                continue;
            LsNames own = {.arena = ls_arena_new()};
            ls_subgraph_own(p->attribute[k]->g, &own);
            if (ls_names_find(&own, from) == 0)
                replace(p->attribute[k]->g, from, to);
            ls_arena_free(own.arena);
        }
    }
}

static bool is_input(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_input; i++)
        if (strcmp(ls_text(g->input[i]->name), name) == 0)
            return true;
    return false;
}

static void move(Hoist *h, Onnx__GraphProto *body, Onnx__TensorProto *t, const char *prefix)
{
    uint32_t id = ls_names_find(&h->names, t->name);
    if (h->makers[id] > 1) {
        char *fresh = ls_arena_printf(h->arena, "%s/%s", prefix, t->name);
        while (ls_names_find(&h->names, fresh) != 0)
            fresh = ls_arena_printf(h->arena, "%s_", fresh);
        ls_names_add(&h->names, fresh);
        replace(body, t->name, fresh);
        t->name = fresh;
    }
    Onnx__GraphProto *g = h->g;
    if (g->n_initializer >= h->cap_list) {
        h->cap_list = 2 * g->n_initializer + 8;
        Onnx__TensorProto **list = ls_arena_alloc(h->arena, h->cap_list, sizeof *list);
        if (g->n_initializer > 0)
            memcpy(list, g->initializer, g->n_initializer * sizeof *list);
        g->initializer = list;
    }
    g->initializer[g->n_initializer++] = t;
}

static void hoist_body(Hoist *h, Onnx__GraphProto *body, const char *prefix);

static void hoist_nodes(Hoist *h, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *p = g->node[i];
        const char *name = ls_text(p->name);
        if (name[0] == '\0' && p->n_output > 0)
            name = ls_text(p->output[0]);
        for (size_t k = 0; k < p->n_attribute; k++)
            if (p->attribute[k]->g != NULL)
                hoist_body(h, p->attribute[k]->g, name);
    }
}

static void hoist_body(Hoist *h, Onnx__GraphProto *body, const char *prefix)
{
    size_t kept = 0;
    for (size_t i = 0; i < body->n_initializer; i++) {
        Onnx__TensorProto *t = body->initializer[i];
        if (ls_text(t->name)[0] == '\0' || is_input(body, t->name))
            body->initializer[kept++] = t;
        else
            move(h, body, t, prefix);
    }
    body->n_initializer = kept;
    hoist_nodes(h, body);
}

void ls_subgraph_hoist(LsArena *a, Onnx__GraphProto *g)
{
    Hoist h = {.arena = a, .g = g, .names = {.arena = a}};
    LsNames any = {.arena = a};
    for (size_t i = 0; i < g->n_node; i++)
        ls_subgraph_names(g->node[i], &any);
    if (any.n == 0)
        return;                 /* no node has a body */
    count_names(&h, g);
    hoist_nodes(&h, g);
}
