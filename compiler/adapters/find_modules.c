/* compiler/adapters/find_modules.c -- see the header. */
#include "compiler/adapters/find_modules.h"

#include "compiler/onnx_file/onnx_domain.h"
#include "compiler/onnx_file/onnx_metadata.h"
#include "compiler/onnx_file/onnx_wire.h"
#include "compiler/onnx_repair/module_scope.h"

#include <string.h>

static bool is(const Onnx__NodeProto *p, const char *op)
{
    return strcmp(ls_text(p->op_type), op) == 0 && ls_onnx_domain(p->domain)[0] == '\0';
}

/* [1, 0], or absent: the reverse of two axes. */
static bool transposes(const Onnx__NodeProto *p)
{
    const Onnx__AttributeProto *perm = ls_onnx_attribute(p, "perm");
    return is(p, "Transpose")
           && (perm == NULL || (perm->n_ints == 2 && perm->ints[0] == 1 && perm->ints[1] == 0));
}

/* The initializer that an operand is, or is the transpose of. */
static Onnx__TensorProto *weight_of(const LsEditor *u, const char *name, bool *transposed)
{
    *transposed = false;
    for (int hops = 0; hops < 4; hops++) {
        const uint32_t id = ls_names_find(&u->names, name);
        if (id == 0 || id >= u->nid)
            return NULL;
        if (u->real[id] != NULL)
            return u->real[id];
        const Onnx__NodeProto *maker = u->maker[id];
        if (maker == NULL || maker->n_input != 1 || (!transposes(maker) && !is(maker, "Identity")))
            return NULL;
        *transposed ^= transposes(maker);
        name = ls_text(maker->input[0]);
    }
    return NULL;
}

static int64_t whole(const Onnx__NodeProto *p, const char *name, int64_t usual)
{
    const Onnx__AttributeProto *v = ls_onnx_attribute(p, name);
    return v != NULL ? v->i : usual;
}

static bool is_one(const Onnx__NodeProto *p, const char *name)
{
    const Onnx__AttributeProto *v = ls_onnx_attribute(p, name);
    return v == NULL || v->f == 1;
}

/* Features of a product whose right side has two axes. */
static bool product(const LsEditor *u, LsAdaptable *m)
{
    const Onnx__NodeProto *p = m->node;
    bool turned = false;
    if (is(p, "Gemm")) {
        if (whole(p, "transA", 0) != 0 || !is_one(p, "alpha") || !is_one(p, "beta"))
            return false;
        turned = whole(p, "transB", 0) != 0;
    } else if (!is(p, "MatMul")) {
        return false;
    }
    bool transposed;
    m->weight = p->n_input >= 2 ? weight_of(u, ls_text(p->input[1]), &transposed) : NULL;
    if (m->weight == NULL || m->weight->n_dims != 2)
        return false;
    const int first = transposed ^ turned;      /* the weight is [out, in] */
    m->kind = LS_MODULE_PRODUCT;
    m->turned = !first;
    m->in = m->weight->dims[first];
    m->out = m->weight->dims[!first];
    return true;
}

static bool convolution(const LsEditor *u, LsAdaptable *m)
{
    const Onnx__NodeProto *p = m->node;
    bool transposed;
    if (!is(p, "Conv") || p->n_input < 2 || whole(p, "group", 1) != 1)
        return false;
    m->weight = weight_of(u, ls_text(p->input[1]), &transposed);
    if (m->weight == NULL || transposed || m->weight->n_dims < 3)
        return false;
    m->kind = LS_MODULE_CONV;
    m->in = m->weight->dims[1];
    m->out = m->weight->dims[0];
    return true;
}

static bool table(const LsEditor *u, LsAdaptable *m)
{
    const Onnx__NodeProto *p = m->node;
    bool transposed;
    if (!is(p, "Gather") || p->n_input != 2 || whole(p, "axis", 0) != 0)
        return false;
    m->weight = weight_of(u, ls_text(p->input[0]), &transposed);
    if (m->weight == NULL || transposed || m->weight->n_dims != 2)
        return false;
    m->kind = LS_MODULE_TABLE;
    m->operand = 1;
    m->turned = true;
    m->in = m->weight->dims[0];
    m->out = m->weight->dims[1];
    return true;
}

/* The module whose call the node is: the last but one of its scopes. */
static const char *scope_of(const LsEditor *u, const Onnx__NodeProto *p)
{
    LsArena *a = u->cx->arena;
    const char *list = ls_onnx_meta(a, &p->base, LS_META_SCOPES), *last = NULL, *before = NULL, *s;
    while (list != NULL && (s = ls_meta_item(a, &list)) != NULL) {
        before = last;
        last = s;
    }
    return before != NULL && before[0] != '\0' ? before : ls_scope_module(a, ls_text(p->name));
}

static bool ends(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* The module's name: that of its weight, which ONNX Runtime's builder spells in its own way; of a
 * weight that other modules read, too, or whose name the exporter made up, that of the node's
 * scope; where that tells no module, the weight's whole name. */
static void name_module(const LsEditor *u, LsAdaptable *m)
{
    const char *weight = ls_text(m->weight->name), *scope = scope_of(u, m->node);
    const char *own = ends(weight, ".weight")
                          ? ls_arena_printf(u->cx->arena, "%.*s", (int)strlen(weight) - 7, weight)
                          : NULL;
    const bool by_scope = scope != NULL && (own == NULL || ls_edit_reads(u, weight) > 1);

    if (m->kind == LS_MODULE_PRODUCT)
        m->module = ls_scope_of_builder(u->cx->arena, weight);
    if (m->module == NULL)
        m->module = by_scope ? scope : own;
    if (m->module == NULL && !ls_source_made_up(weight))
        m->module = weight;
}

LsAdaptable *ls_adaptables(LsEditor *u, uint32_t *n)
{
    const Onnx__GraphProto *g = u->g;
    LsAdaptable *all = ls_arena_alloc(u->cx->arena, g->n_node + 1, sizeof *all);
    *n = 0;
    for (size_t i = 0; i < g->n_node; i++) {
        LsAdaptable m = {.node = g->node[i], .at = i};
        if (m.node->n_output != 1 || (!product(u, &m) && !convolution(u, &m) && !table(u, &m)))
            continue;
        name_module(u, &m);
        for (size_t k = 0; k < g->n_output; k++)
            m.outer |= strcmp(ls_text(g->output[k]->name), ls_text(m.node->output[0])) == 0;
        if (m.module != NULL)
            all[(*n)++] = m;
    }
    return all;
}
