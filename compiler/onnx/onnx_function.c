/* compiler/onnx/onnx_function.c -- inlines calls of model-local functions, and operators that ONNX
 * defines by a body and that have no row.
 *
 * Formal inputs and outputs take the names at the call, inner values become CALL/NAME, and
 * attributes that refer to an attribute of the function take its value from the call. A function
 * may call others, but not itself; the number of expanded nodes is limited. */
#include "compiler/onnx/onnx_function.h"

#include <string.h>

#include "compiler/onnx/onnx_function_ops.h"
#include "compiler/onnx_file/onnx_domain.h"
#include "compiler/onnx_file/onnx_rename.h"
#include "compiler/onnx_file/onnx_subgraph.h"

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
    LsRename names;             /* of the body: the caller's, and new ones */
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
    for (size_t i = 0; i < m->graph->n_node; i++) {
        for (size_t k = 0; k < m->graph->node[i]->n_output; k++)
            ls_names_add(&m->taken, ls_text(m->graph->node[i]->output[k]));
        ls_subgraph_names(m->graph->node[i], &m->taken);
    }
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
        ls_rename_bind(&c->names, ls_text(fn->input[i]),
                       i < p->n_input ? ls_text(p->input[i]) : "");
    for (size_t i = 0; i < p->n_output; i++)
        if (ls_text(p->output[i])[0] != '\0')
            ls_rename_bind(&c->names, ls_text(fn->output[i]), p->output[i]);
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

static Onnx__AttributeProto *resolve_attribute(void *call, Onnx__AttributeProto *a)
{
    const Call *c = call;
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
        return ls_error(cx, (LsWhere){at->index, name, ls_text(node->op_type)}, LS_E_CYCLE,
                        "onnx.inliner.inline_local_functions replaces deep calls by their nodes; "
                        "ONNX allows no circle",
                        "local functions call each other more than %d deep, or in a circle",
                        MAX_CALLS);
    Call c = {.cx = cx, .m = m, .fn = fn, .node = node};
    c.names = (LsRename){.arena = cx->arena,
                         .taken = &m->taken,
                         .prefix = name,
                         .closed = true,
                         .inner = {.arena = cx->arena},
                         .attribute = resolve_attribute,
                         .of = &c};
    Frame inside = {fn->opset_import, fn->n_opset_import, name, at->index, at->depth + 1};
    if (fn->n_opset_import == 0)
        inside = (Frame){at->import, at->nimport, name, at->index, at->depth + 1};
    if (!bind_formals(&c))
        return false;
    for (size_t i = 0; i < fn->n_node; i++)
        if (!expand(cx, m, &inside, ls_rename_node(&c.names, fn->node[i])))
            return false;
    return true;
}

/* The node, or a copy whose last operands are what its bodies read from outside: so the order of
 * nodes and the readers of a value take these into account. */
static const Onnx__NodeProto *with_captures(LsArena *a, const Onnx__NodeProto *node, uint32_t *n)
{
    LsNames captured = {.arena = a};
    ls_subgraph_captures(node, &captured);
    *n = captured.n;
    if (captured.n == 0)
        return node;
    Onnx__NodeProto *p = ls_arena_alloc(a, 1, sizeof *p);
    *p = *node;
    p->input = ls_arena_alloc(a, node->n_input + captured.n, sizeof *p->input);
    if (node->n_input > 0)
        memcpy(p->input, node->input, node->n_input * sizeof *p->input);
    for (uint32_t i = 1; i <= captured.n; i++)
        p->input[p->n_input++] = (char *)captured.name[i];
    return p;
}

static bool expand(LsCtx *cx, LsOnnxModel *m, const Frame *at, const Onnx__NodeProto *node)
{
    if (m->nexpanded++ == MAX_NODES)
        return ls_error(
            cx, LS_NOWHERE, LS_E_UNSUPPORTED, NULL,
            "the model has more than %d nodes after its functions and loops are expanded",
            MAX_NODES);
    int version = ls_onnx_version(at->import, at->nimport, node->domain);
    if (version == 0 && ls_onnx_domain(node->domain)[0] == '\0')
        version = m->opset;
    const Onnx__FunctionProto *fn = function_of(cx, m, node, version);
    if (fn != NULL)
        return expand_call(cx, m, at, node, fn);
    LsOnnxFlat f = {.proto = node,
                    .index = at->index,
                    .version = version,
                    .name = node_name(cx->arena, at, node),
                    .inner = at->depth > 0,
                    .import = at->import,
                    .nimport = at->nimport,
                    .depth = at->depth};
    f.proto = with_captures(cx->arena, node, &f.ncaptured);
    m->node =
        ls_arena_regrow(cx->arena, m->node, m->nnode, m->nnode + 1, sizeof *m->node, &m->cap_node);
    m->node[m->nnode++] = f;
    return true;
}

bool ls_onnx_inline_node(LsCtx *cx, LsOnnxModel *m, const LsOnnxFlat *at, const char *prefix,
                    const Onnx__NodeProto *node)
{
    if (at->depth == MAX_CALLS)
        return ls_error(cx, ls_flat_where(at), LS_E_CYCLE, NULL,
                        "bodies and local functions are nested more than %d deep", MAX_CALLS);
    Frame inside = {at->import, at->nimport, prefix, at->index, at->depth + 1};
    return expand(cx, m, &inside, node);
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
