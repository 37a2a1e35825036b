/* compiler/onnx/onnx_function.c -- inlines calls of model-local functions, and operators that ONNX defines by a body
 * and that have no row.
 *
 * Formal inputs and outputs take the names at the call, inner values become CALL/NAME, and attributes that refer to an
 * attribute of the function take its value from the call. A function may call others, but not itself; the number of
 * expanded nodes is limited. */
#include "compiler/onnx/onnx_function.h"

#include <string.h>

#include "compiler/onnx/onnx_bodies.h"
#include "compiler/onnx/onnx_domain.h"

enum { MAX_CALLS = 16, MAX_NODES = 1 << 20 };   /* nested calls; nodes and calls after inlining */

typedef struct Frame {          /* the place of a list of nodes */
    Onnx__OperatorSetIdProto *const *import; size_t nimport;
    const char *prefix;         /* of node names; NULL: the graph's own nodes */
    uint32_t index;             /* node of the file */
    int depth;
} Frame;

typedef struct Call {           /* one call being expanded */
    LsCtx *cx;
    LsOnnxModel *m;
    const Onnx__FunctionProto *fn;
    const Onnx__NodeProto *node;
    const char *prefix;
    LsNames inner;              /* names in the body and their outer names, by id */
    const char **outer; uint32_t cap;
} Call;

static const char *function_key(LsArena *a, const char *domain, const char *name)
{
    return ls_arena_printf(a, "%s:%s", ls_onnx_domain(domain), ls_text(name));
}

static bool collect(LsCtx *cx, LsOnnxModel *m)
{
    bool good = true;
    m->functions = m->taken = (LsNames){.arena = cx->arena};
    m->function = ls_arena_alloc(cx->arena, m->proto->n_functions + 1, sizeof *m->function);
    for (size_t i = 0; i < m->proto->n_functions; i++) {
        const Onnx__FunctionProto *fn = m->proto->functions[i];
        const char *key = function_key(cx->arena, fn->domain, fn->name);
        if (ls_names_find(&m->functions, key) != 0)
            good = ls_error(cx, LS_NOWHERE, LS_E_NAME, NULL, "two local functions are called '%s'",
                            key);
        m->function[ls_names_add(&m->functions, key)] = fn;
    }
    for (size_t i = 0; i < m->graph->n_node; i++)
        for (size_t k = 0; k < m->graph->node[i]->n_output; k++)
            ls_names_add(&m->taken, ls_text(m->graph->node[i]->output[k]));
    for (size_t i = 0; i < m->graph->n_initializer; i++)
        ls_names_add(&m->taken, ls_text(m->graph->initializer[i]->name));
    for (size_t i = 0; i < m->graph->n_input; i++)
        ls_names_add(&m->taken, ls_text(m->graph->input[i]->name));
    return good;
}

static const Onnx__FunctionProto *function_of(LsCtx *cx, const LsOnnxModel *m,
                                              const Onnx__NodeProto *node, int version)
{
    uint32_t id = 0;
    if (m->functions.n > 0)
        id = ls_names_find(&m->functions, function_key(cx->arena, node->domain, node->op_type));
    if (id != 0)
        return m->function[id];
    const char *op = ls_text(node->op_type);
    bool ours = ls_onnx_domain(node->domain)[0] == '\0' && ls_onnx_find(op) == NULL;
    return ours ? ls_onnx_body(cx->arena, op, version) : NULL;
}

/* ---- names ---- */

static void bind(Call *c, const char *inner, const char *outer)
{
    uint32_t id = ls_names_add(&c->inner, inner), used = c->outer != NULL ? id : 0;
    c->outer = ls_arena_grow(c->cx->arena, c->outer, used, id + 1, sizeof *c->outer, &c->cap);
    c->outer[id] = outer;
}

static char *outer_name(Call *c, const char *inner)
{
    static char none[] = "";
    if (inner[0] == '\0')
        return none;
    uint32_t id = ls_names_find(&c->inner, inner);
    if (id == 0) {
        char *fresh = ls_arena_printf(c->cx->arena, "%s/%s", c->prefix, inner);
        while (ls_names_find(&c->m->taken, fresh) != 0)
            fresh = ls_arena_printf(c->cx->arena, "%s_", fresh);
        ls_names_add(&c->m->taken, fresh);
        bind(c, inner, fresh);
        return fresh;
    }
    return (char *)c->outer[id];
}

static char **outer_names(Call *c, char *const *inner, size_t n)
{
    char **outer = ls_arena_alloc(c->cx->arena, n + 1, sizeof *outer);
    for (size_t i = 0; i < n; i++)
        outer[i] = outer_name(c, ls_text(inner[i]));
    return outer;
}

static bool bind_formals(Call *c)
{
    const Onnx__FunctionProto *fn = c->fn;
    const Onnx__NodeProto *p = c->node;
    if (p->n_input > fn->n_input || p->n_output > fn->n_output)
        return ls_error(
            c->cx, (LsWhere){-1, ls_text(p->name), ls_text(p->op_type)}, LS_E_NAME, NULL,
            "the call has %zu operands and %zu results, the local function takes %zu and gives %zu",
            p->n_input, p->n_output, fn->n_input, fn->n_output);
    for (size_t i = 0; i < fn->n_input; i++)
        bind(c, ls_text(fn->input[i]), i < p->n_input ? ls_text(p->input[i]) : "");
    for (size_t i = 0; i < p->n_output; i++)
        if (ls_text(p->output[i])[0] != '\0')
            bind(c, ls_text(fn->output[i]), p->output[i]);
    return true;
}

/* ---- attributes ---- */

/* The default of a function's attribute: FunctionProto.attribute_proto, field 11. ONNX definitions
 * before 1.13 do not know the field. */
static const Onnx__AttributeProto *default_attribute(LsCtx *cx, const Onnx__FunctionProto *fn,
                                                     const char *name)
{
    enum { ATTRIBUTE_PROTO = 11 };
    const ProtobufCMessage *base = &fn->base;
    const ProtobufCFieldDescriptor *known =
        protobuf_c_message_descriptor_get_field(base->descriptor, ATTRIBUTE_PROTO);
    if (known != NULL) {
        const char *at = (const char *)fn;
        Onnx__AttributeProto *const *list = *(Onnx__AttributeProto ***)(at + known->offset);
        for (size_t i = 0; i < *(const size_t *)(at + known->quantifier_offset); i++)
            if (strcmp(ls_text(list[i]->name), name) == 0)
                return list[i];
        return NULL;
    }
    for (unsigned i = 0; i < base->n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *u = &base->unknown_fields[i];
        const Onnx__AttributeProto *a = ls_wire_attribute(cx->arena, u);
        if (u->tag == ATTRIBUTE_PROTO && a != NULL && strcmp(ls_text(a->name), name) == 0)
            return a;
    }
    return NULL;
}

static Onnx__AttributeProto *resolve_attribute(Call *c, Onnx__AttributeProto *a)
{
    const char *ref = ls_text(a->ref_attr_name);
    if (ref[0] == '\0')
        return a;
    const Onnx__AttributeProto *from = NULL;
    for (size_t i = 0; i < c->node->n_attribute && from == NULL; i++)
        if (strcmp(ls_text(c->node->attribute[i]->name), ref) == 0)
            from = c->node->attribute[i];
    if (from == NULL)
        from = default_attribute(c->cx, c->fn, ref);
    if (from == NULL && (a->has_f || a->n_ints > 0))
        from = a;               /* bodies of ONNX's own operators */
    if (from == NULL)
        return NULL;            /* not given: the operator's own default applies */
    Onnx__AttributeProto *copy = ls_arena_alloc(c->cx->arena, 1, sizeof *copy);
    *copy = *from;
    copy->name = a->name;
    copy->ref_attr_name = NULL;
    return copy;
}

/* A body's node with the names and attribute values of this call. */
static Onnx__NodeProto *instantiate(Call *c, const Onnx__NodeProto *body)
{
    Onnx__NodeProto *p = ls_arena_alloc(c->cx->arena, 1, sizeof *p);
    *p = *body;
    p->input = outer_names(c, body->input, body->n_input);
    p->output = outer_names(c, body->output, body->n_output);
    p->attribute = ls_arena_alloc(c->cx->arena, body->n_attribute + 1, sizeof *p->attribute);
    p->n_attribute = 0;
    for (size_t i = 0; i < body->n_attribute; i++) {
        Onnx__AttributeProto *a = resolve_attribute(c, body->attribute[i]);
        if (a != NULL)
            p->attribute[p->n_attribute++] = a;
    }
    return p;
}

/* ---- expansion ---- */

static const char *node_name(LsArena *a, const Frame *at, const Onnx__NodeProto *p)
{
    const char *name = ls_text(p->name);
    if (name[0] == '\0' && p->n_output > 0)
        return ls_text(p->output[0]);
    return at->prefix != NULL ? ls_arena_printf(a, "%s/%s", at->prefix, name) : name;
}

static bool expand(LsCtx *cx, LsOnnxModel *m, const Frame *at, const Onnx__NodeProto *node);

static bool expand_call(LsCtx *cx, LsOnnxModel *m, const Frame *at, const Onnx__NodeProto *node,
                        const Onnx__FunctionProto *fn)
{
    const char *name = node_name(cx->arena, at, node);
    if (at->depth == MAX_CALLS)
        return ls_error(cx, (LsWhere){at->index, name, ls_text(node->op_type)}, LS_E_CYCLE, NULL,
                        "local functions call each other more than %d deep, or in a circle",
                        MAX_CALLS);
    Call c = {
        .cx = cx, .m = m, .fn = fn, .node = node, .prefix = name, .inner = {.arena = cx->arena}};
    Frame inside = {fn->opset_import, fn->n_opset_import, name, at->index, at->depth + 1};
    if (fn->n_opset_import == 0)
        inside = (Frame){at->import, at->nimport, name, at->index, at->depth + 1};
    if (!bind_formals(&c))
        return false;
    for (size_t i = 0; i < fn->n_node; i++)
        if (!expand(cx, m, &inside, instantiate(&c, fn->node[i])))
            return false;
    return true;
}

static bool expand(LsCtx *cx, LsOnnxModel *m, const Frame *at, const Onnx__NodeProto *node)
{
    if (m->nexpanded++ == MAX_NODES)
        return ls_error(cx, LS_NOWHERE, LS_E_UNSUPPORTED, NULL,
                        "the model has more than %d nodes after its local functions are inlined",
                        MAX_NODES);
    int version = ls_onnx_version(at->import, at->nimport, node->domain);
    if (version == 0 && ls_onnx_domain(node->domain)[0] == '\0')
        version = m->opset;
    const Onnx__FunctionProto *fn = function_of(cx, m, node, version);
    if (fn != NULL)
        return expand_call(cx, m, at, node, fn);
    m->node =
        ls_arena_grow(cx->arena, m->node, m->nnode, m->nnode + 1, sizeof *m->node, &m->cap_node);
    m->node[m->nnode++] = (LsOnnxFlat){.proto = node,
                                       .index = at->index,
                                       .version = version,
                                       .name = node_name(cx->arena, at, node),
                                       .inner = at->depth > 0};
    return true;
}

bool ls_onnx_inline(LsCtx *cx, LsOnnxModel *m)
{
    const Onnx__GraphProto *g = m->graph;
    bool good = collect(cx, m);
    for (size_t i = 0; i < g->n_node && m->nexpanded <= MAX_NODES; i++) {
        Frame at = {m->proto->opset_import, m->proto->n_opset_import, NULL, (uint32_t)i, 0};
        good &= expand(cx, m, &at, g->node[i]);
    }
    return good;
}
