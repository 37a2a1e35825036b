/* compiler/onnx/onnx_run_body.c -- see the header. */
#include "compiler/onnx/onnx_run_body.h"

#include <string.h>

#include "compiler/ir/graph.h"
#include "compiler/onnx/onnx_check.h"
#include "compiler/onnx/onnx_function.h"
#include "compiler/onnx_file/onnx_rename.h"
#include "compiler/onnx_file/onnx_subgraph.h"

enum { MAX_UNROLLED = 1 << 16 };        /* nodes of all runs of bodies, and two for each run */

static bool wrong(const LsBody *b, LsErrId id, const char *hint, const char *text)
{
    return ls_error(b->im->cx, ls_flat_where(b->f), id, hint, "%s", text);
}

bool ls_body_open(LsBody *b, LsImport *im, const LsOnnxFlat *f, const char *attribute,
                  size_t operands, size_t results)
{
    *b = (LsBody){im, f, ls_subgraph(f->proto, attribute)};
    LsArena *a = im->cx->arena;
    if (b->g == NULL)
        return wrong(b, LS_E_ATTR, NULL, ls_arena_printf(a, "it has no graph '%s'", attribute));
    if (b->g->n_sparse_initializer > 0)
        return wrong(b, LS_E_UNSUPPORTED, NULL, "sparse initializers are not handled");
    if (b->g->n_input != operands || b->g->n_output < results)
        return wrong(b, LS_E_NAME, NULL,
                     ls_arena_printf(a, "'%s' takes %zu values and gives %zu; the node has %zu for "
                                     "it and takes %zu of it", attribute, b->g->n_input,
                                     b->g->n_output, operands, results));
    return true;
}

/* ---- names ---- */

static void *longer(LsArena *a, const void *old, uint32_t n, uint32_t want, size_t size)
{
    return memcpy(ls_arena_alloc(a, want, size), old, n * size);
}

/* The id of the name, after making room for it in the arrays by name, which may move. */
static uint32_t name_id(LsImport *im, const char *name)
{
    LsArena *a = im->cx->arena;
    uint32_t id = ls_names_add(&im->m->names, name), old = im->nname;
    if (id < old)
        return id;
    uint32_t n = im->nname = 2 * id + 64;
    im->value = longer(a, im->value, old, n, sizeof *im->value);
    im->is_output = longer(a, im->is_output, old, n, sizeof *im->is_output);
    im->reads = longer(a, im->reads, old, n, sizeof *im->reads);
    im->verdict = longer(a, im->verdict, old, n, sizeof *im->verdict);
    im->m->maker = longer(a, im->m->maker, old, n, sizeof *im->m->maker);
    for (uint32_t i = old; i < n; i++)
        im->m->maker[i] = LS_MADE_NOT;
    return id;
}

static bool bind_inputs(const LsBody *b, LsRename *r, const LsOnnxValue operand[])
{
    LsImport *im = b->im;
    for (size_t i = 0; i < b->g->n_input; i++) {
        const char *name = ls_text(b->g->input[i]->name);
        if (name[0] == '\0' || ls_names_find(&r->inner, name) != 0)
            return wrong(b, LS_E_NAME, NULL, "an operand of the body has no name of its own");
        if (operand[i].poison)
            return false;       /* the reason was reported */
        if (!ls_onnx_is_there(&operand[i]))
            return wrong(b, LS_E_NAME, NULL,
                         ls_arena_printf(im->cx->arena,
                                         "the operand for '%s' of "
                                         "the body is left out",
                                         name));
        uint32_t id = name_id(im, ls_rename_fresh(r, name));
        im->value[id] = operand[i];
        im->m->maker[id] = LS_MADE_INPUT;
    }
    return true;
}

static bool bind_result(const LsBody *b, LsRename *r, const char *name)
{
    if (name[0] == '\0')
        return true;
    if (ls_names_find(&r->inner, name) != 0)
        return wrong(b, LS_E_NAME, "every value of an ONNX graph has a name of its own",
                     ls_arena_printf(b->im->cx->arena, "'%s' is made twice in the body", name));
    ls_rename_fresh(r, name);
    return true;
}

static bool bind_results(const LsBody *b, LsRename *r)
{
    bool good = true;
    for (size_t i = 0; i < b->g->n_initializer; i++)
        good &= bind_result(b, r, ls_text(b->g->initializer[i]->name));
    for (size_t i = 0; i < b->g->n_node; i++)
        for (size_t k = 0; k < b->g->node[i]->n_output; k++)
            good &= bind_result(b, r, ls_text(b->g->node[i]->output[k]));
    return good;
}

/* ---- nodes ---- */

/* An initializer of a body inside a function, as a node; others were moved into the graph. */
static Onnx__NodeProto *constant(LsArena *a, LsRename *r, Onnx__TensorProto *t)
{
    Onnx__NodeProto *p = ls_arena_alloc(a, 1, sizeof *p);
    Onnx__AttributeProto *value = ls_arena_alloc(a, 1, sizeof *value);
    onnx__node_proto__init(p);
    onnx__attribute_proto__init(value);
    value->name = (char *)"value";
    value->has_type = true;
    value->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    value->t = t;
    p->op_type = (char *)"Constant";
    p->n_output = p->n_attribute = 1;
    p->output = ls_arena_alloc(a, 1, sizeof *p->output);
    p->output[0] = (char *)ls_rename_name(r, ls_text(t->name));
    p->attribute = ls_arena_alloc(a, 1, sizeof *p->attribute);
    p->attribute[0] = value;
    return p;
}

static bool expand(const LsBody *b, LsRename *r)
{
    LsCtx *cx = b->im->cx;
    bool good = true;
    for (size_t i = 0; i < b->g->n_initializer && good; i++)
        good = ls_onnx_inline_node(cx, b->im->m, b->f, r->prefix,
                              constant(cx->arena, r, b->g->initializer[i]));
    for (size_t i = 0; i < b->g->n_node && good; i++)
        good = ls_onnx_check_attributes(cx, ls_flat_where(b->f), b->g->node[i])
            && ls_onnx_inline_node(cx, b->im->m, b->f, r->prefix, ls_rename_node(r, b->g->node[i]));
    return good;
}

static void index_names(LsImport *im, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const Onnx__NodeProto *p = im->m->node[i].proto;
        for (size_t k = 0; k < p->n_input; k++) {
            uint32_t id = name_id(im, ls_text(p->input[k]));
            im->reads[id]++;
        }
        for (size_t k = 0; k < p->n_output; k++) {
            uint32_t id = name_id(im, ls_text(p->output[k]));
            if (ls_text(p->output[k])[0] != '\0')
                im->m->maker[id] = i;
        }
    }
}

static bool take_results(const LsBody *b, LsRename *r, LsOnnxValue result[])
{
    for (size_t k = 0; k < b->g->n_output; k++) {
        const char *name = ls_text(b->g->output[k]->name);
        uint32_t id = name_id(b->im, ls_rename_name(r, name));
        result[k] = b->im->value[id];
        if (result[k].poison)
            return false;       /* the reason was reported */
        if (!ls_onnx_is_there(&result[k]))
            return wrong(b, LS_E_NAME, NULL, ls_arena_printf(b->im->cx->arena,
                         "result '%s' of the body is not made by it", name));
    }
    return true;
}

bool ls_body_run(const LsBody *b, const char *prefix, const LsOnnxValue operand[],
                 LsOnnxValue result[])
{
    LsImport *im = b->im;
    LsRename r = {.arena = im->cx->arena, .taken = &im->m->taken, .prefix = prefix,
                  .inner = {.arena = im->cx->arena}};
    im->unrolled += (int64_t)b->g->n_node + 2;
    if (im->unrolled > MAX_UNROLLED)
        return wrong(b, LS_E_UNSUPPORTED, "make it run less often: iterations become nodes",
                     ls_arena_printf(im->cx->arena, "bodies have more than %d nodes when their "
                                     "iterations are written out", MAX_UNROLLED));
    if (!bind_inputs(b, &r, operand) || !bind_results(b, &r))
        return false;
    uint32_t from = im->m->nnode;
    if (!expand(b, &r))
        return false;
    uint32_t to = im->m->nnode;
    index_names(im, from, to);
    for (uint32_t i = from; i < to; i++) {
        const LsOnnxFlat flat = im->m->node[i];     /* bodies inside it append nodes */
        ls_onnx_build(im, &flat);
    }
    ls_graph_origin(im->g, (LsOrigin){LS_FORWARD, {0}, b->f->index, b->f->name});
    return take_results(b, &r, result);
}
