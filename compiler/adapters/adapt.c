/* compiler/adapters/adapt.c -- see the header. Beside y = x W of a module come u = dropout(x) A',
 * v = u B' and y + scale v, in the place of y. */
#include "compiler/adapters/adapt.h"

#include "compiler/adapters/adapter_nodes.h"
#include "compiler/adapters/adapter_values.h"
#include "compiler/adapters/dora.h"
#include "compiler/adapters/find_modules.h"
#include "compiler/ir/shape.h"
#include "compiler/onnx_file/onnx_wire.h"
#include "compiler/onnx_repair/module_scope.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

typedef struct Adapting {
    LsEditor *u;
    LsAdapters *a;
    LsAdapterValues values;
    LsAdapterValues *further;                   /* of the members 1, 2, ... of an ensemble */
    int opset;
    LsAdapterNodes nodes;                       /* beside the node at hand */
    bool *named;                                /* by target: it named a module */
} Adapting;

static bool ends(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_added(const LsAdapters *a, const Onnx__NodeProto *p)
{
    for (uint32_t k = 0; k < a->nchange; k++)
        if (strcmp(a->change[k].result, ls_text(p->output[0])) == 0)
            return true;                /* the sum, in the place of its module's result */
    return ls_names_find(&a->made, ls_text(p->output[0])) != 0;
}

void ls_adapters_remove(const LsAdapters *a, Onnx__GraphProto *g)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->n_node; i++)
        if (g->node[i]->n_output != 1 || !is_added(a, g->node[i]))
            g->node[kept++] = g->node[i];
    g->n_node = kept;
    for (uint32_t k = 0; k < a->nchange; k++)
        a->change[k].node->output[0] = a->change[k].result;
}

/* ---- which modules ---- */

/* The first number among the parts of a dotted name; -1: there is none. */
static int64_t layer_of(const char *module)
{
    for (const char *p = module; p != NULL; p = strchr(p, '.')) {
        char *end;
        p += *p == '.';
        const long long n = strtoll(p, &end, 10);
        if (end > p && (*end == '.' || *end == '\0'))
            return n;
    }
    return -1;
}

static bool in_layers(const LsAdapterSpec *s, const char *module)
{
    const int64_t own = layer_of(module);
    bool found = s->nlayer == 0;
    for (uint32_t k = 0; k < s->nlayer; k++)
        found |= s->layer[k] == own;
    return found;
}

static bool matches_pattern(const char *pattern, const char *module)
{
    regex_t r;
    regmatch_t whole;
    if (regcomp(&r, pattern, REG_EXTENDED) != 0)
        return false;
    const bool found = regexec(&r, module, 1, &whole, 0) == 0 && whole.rm_so == 0
                       && (size_t)whole.rm_eo == strlen(module);
    regfree(&r);
    return found;
}

/* A module that is trained as it is has no adapter. */
static bool is_saved(const LsAdapterSpec *s, const char *module)
{
    for (uint32_t k = 0; k < s->nsave; k++)
        if (ls_adapter_names(s->save[k], module))
            return true;
    return false;
}

static bool is_asked(Adapting *w, const LsAdaptable *m)
{
    const LsAdapterSpec *s = w->a->spec;
    bool asked = false;
    if (s->pattern != NULL)
        asked = matches_pattern(s->pattern, m->module);
    else if (s->ntarget == 0)
        asked = m->kind == LS_MODULE_PRODUCT && !m->outer;
    for (uint32_t k = 0; k < s->ntarget; k++)
        if (ls_adapter_names(s->target[k], m->module))
            asked = w->named[k] = true;
    return asked && in_layers(s, m->module) && !is_saved(s, m->module);
}

/* ---- tensors ---- */

static void note(Adapting *w, const char *name, const char *key, const float **further)
{
    LsAdapters *a = w->a;
    ls_names_add(&a->trained, name);
    a->tensor = ls_arena_grow(w->u->cx->arena, a->tensor, a->ntensor, a->ntensor + 1,
                              sizeof *a->tensor, &a->cap_tensor);
    a->tensor[a->ntensor++] = (LsAdapterTensor){name, key, further};
}

static void add_tensor(Adapting *w, const char *name, const LsShape *shape, const float *data)
{
    LsArena *a = w->u->cx->arena;
    Onnx__TensorProto *t = ls_arena_alloc(a, 1, sizeof *t);
    onnx__tensor_proto__init(t);
    t->name = ls_arena_strdup(a, name);
    t->n_dims = (size_t)shape->rank;
    t->dims = ls_arena_alloc(a, t->n_dims + 1, sizeof *t->dims);
    memcpy(t->dims, shape->dim, t->n_dims * sizeof *t->dims);
    t->has_data_type = t->has_raw_data = true;
    t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    t->raw_data = (ProtobufCBinaryData){(size_t)ls_count(shape) * sizeof *data, (uint8_t *)data};
    ls_edit_add_initializer(w->u, t);
}

/* Shapes of A and B. */
static LsShape shape_a(const LsAdaptable *m, int64_t rank)
{
    LsShape s = {.rank = (int)m->weight->n_dims};
    for (int k = 0; k < s.rank; k++)
        s.dim[k] = m->kind == LS_MODULE_CONV ? m->weight->dims[k] : m->in;
    s.dim[0] = rank;
    return s;
}

static LsShape shape_b(const LsAdaptable *m, int64_t rank)
{
    LsShape s = {.rank = (int)m->weight->n_dims};
    for (int k = 0; k < s.rank; k++)
        s.dim[k] = 1;
    s.dim[0] = m->out;
    s.dim[1] = rank;
    return s;
}

/* The ends of names: tables have other ones in peft. */
static const char *leaf(LsModuleKind kind, bool b)
{
    static const char *const name[2][2] = {{"lora_A.weight", "lora_B.weight"},
                                           {"lora_embedding_A", "lora_embedding_B"}};
    return name[kind == LS_MODULE_TABLE][b];
}

static const char *key_of(LsArena *a, const char *module, const char *end)
{
    return ls_arena_printf(a, "base_model.model.%s.%s", module, end);
}

/* Room for a tensor's values of the further members; NULL: there are none. */
static const float **further(Adapting *w)
{
    const uint32_t n = w->a->nfurther;
    return n > 0 ? ls_arena_alloc(w->u->cx->arena, n, sizeof(const float *)) : NULL;
}

static bool add_factor(Adapting *w, const LsAdaptable *m, const LsShape *shape, bool b,
                       const char **name)
{
    LsArena *a = w->u->cx->arena;
    const char *end = leaf(m->kind, b), *key = key_of(a, m->module, end);
    *name = ls_arena_printf(a, "%s.%s", m->module, end);
    const float *data = ls_adapter_value(&w->values, key, shape, m->kind == LS_MODULE_TABLE, b);
    const float **more = further(w);
    for (uint32_t k = 0; data != NULL && k < w->a->nfurther; k++)
        if ((more[k] = ls_adapter_value(&w->further[k], key, shape, m->kind == LS_MODULE_TABLE, b))
            == NULL)
            return false;
    if (data == NULL)
        return false;
    add_tensor(w, *name, shape, data);
    note(w, *name, key, more);
    return true;
}

/* ---- nodes ---- */

/* The adapter's input: x, in training with its dropout. */
static const char *input_of(Adapting *w, const LsAdaptable *m)
{
    LsAdapterNodes *n = &w->nodes;
    const char *x = ls_text(m->node->input[m->operand]);
    const double rate = w->a->spec->dropout;
    if (rate == 0 || m->kind == LS_MODULE_TABLE)        /* as in peft */
        return x;
    const char *ratio = ls_adapter_real(n, rate, "lora_dropout.ratio"),
               *mode = ls_adapter_true(n, "lora_dropout.training");
    Onnx__NodeProto *p = ls_adapter_node(n, "Dropout", x, ratio, "lora_dropout");
    char **input = ls_arena_alloc(w->u->cx->arena, 3, sizeof *input);
    memcpy(input, p->input, 2 * sizeof *input);
    input[2] = (char *)mode;
    p->input = input;
    p->n_input = 3;
    return p->output[0];
}

/* The two factors' result. */
static const char *low_product(Adapting *w, const LsAdaptable *m, const LsAdapted *of,
                               const char *x)
{
    LsAdapterNodes *n = &w->nodes;
    if (m->kind == LS_MODULE_CONV) {
        Onnx__NodeProto *first = ls_adapter_node(n, "Conv", x, of->a, "lora_A");
        for (size_t k = 0; k < m->node->n_attribute; k++)
            ls_adapter_attribute(w->u->cx->arena, first, m->node->attribute[k]);
        return ls_adapter_add(n, "Conv", first->output[0], of->b, "lora_B");
    }
    const char *right = ls_adapter_add(n, "Transpose", of->a, NULL, "lora_A.turned");
    const char *u = m->kind == LS_MODULE_TABLE ? ls_adapter_add(n, "Gather", right, x, "lora_A")
                                               : ls_adapter_add(n, "MatMul", x, right, "lora_A");
    return ls_adapter_add(n, "MatMul", u,
                          ls_adapter_add(n, "Transpose", of->b, NULL, "lora_B.turned"), "lora_B");
}

/* Gives the node's result another name, and its own name to that of the last node. */
static void add_to_result(Adapting *w, const LsAdaptable *m, const LsAdapted *of)
{
    LsAdapterNodes *n = &w->nodes;
    char *result = m->node->output[0];
    LsAdapters *a = w->a;
    n->module = m->module;
    a->change = ls_arena_grow(w->u->cx->arena, a->change, a->nchange, a->nchange + 1,
                              sizeof *a->change, &a->cap_change);
    a->change[a->nchange++] = (LsAdapterChange){m->node, result};
    m->node->output[0] =
        (char *)ls_edit_fresh(w->u, ls_arena_printf(w->u->cx->arena, "%s.base", m->module));
    const char *x = input_of(w, m), *low = low_product(w, m, of, x);
    if (of->scale != 1)
        low = ls_adapter_add(n, "Mul", low, ls_adapter_real(n, of->scale, "lora_scale"),
                             "lora_scaled");
    if (of->magnitude != NULL)
        ls_dora_result(n, m, of, x, low, w->opset);
    else
        ls_adapter_add(n, "Add", m->node->output[0], low, "lora_sum");
    for (uint32_t k = 0; k < n->nmade; k++)
        ls_names_add(&a->made, n->made[k]->output[0]);
    n->made[n->nmade - 1]->output[0] = result;
}

static const LsAdapted *find_adapted(const LsAdapters *a, const char *module)
{
    for (uint32_t k = 0; k < a->nadapted; k++)
        if (strcmp(a->adapted[k].module, module) == 0)
            return &a->adapted[k];
    return NULL;
}

/* Of DoRA: a magnitude for each row of the weight, at first its norm. */
static bool add_magnitude(Adapting *w, const LsAdaptable *m, LsAdapted *one)
{
    LsArena *a = w->u->cx->arena;
    LsShape shape = {.rank = m->kind == LS_MODULE_CONV ? (int)m->weight->n_dims : 1};
    if (!w->a->spec->dora)
        return true;
    if (m->kind == LS_MODULE_TABLE)
        return ls_error(w->u->cx, LS_NOWHERE, LS_E_OPTION, "name other modules",
                        "'%s' is a table, whose rows have no magnitude and direction here",
                        m->module);
    for (int k = 0; k < shape.rank; k++)
        shape.dim[k] = 1;
    shape.dim[shape.rank > 1] = m->out;
    one->magnitude = ls_arena_printf(a, "%s.lora_magnitude_vector", m->module);
    const char *key = key_of(a, m->module, "lora_magnitude_vector");
    const float *data = w->values.file != NULL
                            ? ls_adapter_value(&w->values, key, &shape, false, false)
                            : ls_dora_norms(w->u, m);
    const float **more = w->values.file != NULL ? further(w) : NULL;
    for (uint32_t k = 0; more != NULL && data != NULL && k < w->a->nfurther; k++)
        if ((more[k] = ls_adapter_value(&w->further[k], key, &shape, false, false)) == NULL)
            return false;
    if (data == NULL)
        return false;
    add_tensor(w, one->magnitude, &shape, data);
    note(w, one->magnitude, key, more);
    return true;
}

static bool fits_rank(Adapting *w, const LsAdaptable *m, int64_t rank)
{
    const int64_t most = m->in < m->out ? m->in : m->out;
    return m->kind == LS_MODULE_CONV || rank <= most
           || ls_error(w->u->cx, LS_NOWHERE, LS_E_OPTION, "a smaller r",
                       "the adapter of '%s' has rank %lld, and its weight has %lld rows and %lld "
                       "columns: it would have more parameters than the weight",
                       m->module, (long long)rank, (long long)m->out, (long long)m->in);
}

static bool adapt(Adapting *w, const LsAdaptable *m)
{
    LsAdapters *a = w->a;
    const int64_t rank = ls_adapter_rank(a->spec, m->module);
    const LsShape sa = shape_a(m, rank), sb = shape_b(m, rank);
    const LsAdapted *again = find_adapted(a, m->module);        /* a module that is called twice */
    LsAdapted one = {m->module, ls_text(m->weight->name), NULL, NULL, NULL, rank, m->in, m->out,
                     ls_adapter_scale(a->spec, m->module), m->turned};
    if (again != NULL && (again->in != m->in || again->out != m->out))
        return ls_error(w->u->cx, LS_NOWHERE, LS_E_OPTION, "name other modules",
                        "'%s' looks up rows of its weight, and multiplies by it: one adapter is "
                        "not right for both",
                        m->module);
    if (again != NULL)
        one = *again;
    else if (!fits_rank(w, m, rank) || !add_factor(w, m, &sa, false, &one.a)
             || !add_factor(w, m, &sb, true, &one.b) || !add_magnitude(w, m, &one))
        return false;
    if (again == NULL) {
        a->adapted = ls_arena_grow(w->u->cx->arena, a->adapted, a->nadapted, a->nadapted + 1,
                                   sizeof *a->adapted, &a->cap_adapted);
        a->adapted[a->nadapted++] = one;
    }
    add_to_result(w, m, &one);
    return true;
}

/* ---- what is trained beside ---- */

/* The module of a tensor of the file: without the last part of its name. A weight of ONNX Runtime's
 * builder is turned beside that of the module, and is none of it here. */
static const char *owner_of(LsArena *a, const char *tensor)
{
    const char *dot = strrchr(tensor, '.');
    const char *module = ends(tensor, ".bias") ? ls_scope_of_builder(a, tensor) : NULL;
    if (module != NULL)
        return module;
    return dot != NULL ? ls_arena_printf(a, "%.*s", (int)(dot - tensor), tensor) : "";
}

/* Key of a tensor that is trained as it is: peft wraps adapted modules. */
static const char *saved_key(Adapting *w, const char *tensor, const char *owner)
{
    LsArena *a = w->u->cx->arena;
    const char *dot = strrchr(tensor, '.'), *last = dot != NULL ? dot + 1 : tensor;
    if (find_adapted(w->a, owner) != NULL)
        return ls_arena_printf(a, "base_model.model.%s.base_layer.%s", owner, last);
    return ls_arena_printf(a, "base_model.model.%s%s%s", owner, owner[0] != '\0' ? "." : "", last);
}

static bool is_beside(Adapting *w, const char *tensor, const char *owner)
{
    const LsAdapterSpec *s = w->a->spec;
    const bool bias = ends(tensor, ".bias");
    return (s->bias == LS_ADAPTER_BIAS_ALL && bias)
           || (s->bias == LS_ADAPTER_BIAS_OWN && bias && find_adapted(w->a, owner) != NULL)
           || is_saved(s, owner);
}

/* The value of a further member's file, which has one where the first member's has. */
static bool take_further(Adapting *w, uint32_t k, const char *key, int64_t count,
                         const float **more, bool *bad)
{
    const float *data = ls_adapter_saved(&w->further[k], key, count, bad);
    if (!*bad && (data != NULL) != (more != NULL))
        return ls_error(w->u->cx, LS_NOWHERE, LS_E_DATA, NULL,
                        "'%s' is in %s and not in %s", key,
                        (data != NULL ? &w->further[k] : &w->values)->file->path,
                        (data != NULL ? w->values : w->further[k]).file->path);
    if (more != NULL)
        more[k] = data;
    return !*bad;
}

/* Takes the value of a file of peft. Weights of files have the module's own layout there. */
static bool take_beside(Adapting *w, Onnx__TensorProto *t)
{
    const char *name = ls_text(t->name), *owner = owner_of(w->u->cx->arena, name);
    if (!is_beside(w, name, owner))
        return true;
    bool bad;
    const int64_t count = ls_edit_count(t);
    const char *key = saved_key(w, name, owner);
    const float *data = ls_adapter_saved(&w->values, key, count, &bad);
    const float **more = data != NULL ? further(w) : NULL;
    for (uint32_t k = 0; !bad && k < w->a->nfurther; k++)
        if (!take_further(w, k, key, count, more, &bad))
            return false;
    if (bad)
        return false;
    note(w, name, key, more);
    if (data == NULL)
        return true;
    Onnx__TensorProto own;
    onnx__tensor_proto__init(&own);
    own.name = t->name;
    own.n_dims = t->n_dims;
    own.dims = t->dims;
    own.has_data_type = own.has_raw_data = true;
    own.data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    own.raw_data = (ProtobufCBinaryData){(size_t)count * sizeof *data, (uint8_t *)data};
    *t = own;
    return true;
}

static bool take_saved(Adapting *w)
{
    const Onnx__GraphProto *g = w->u->g;
    const LsAdapterSpec *s = w->a->spec;
    const uint32_t before = w->a->ntensor;
    for (size_t i = 0; i < g->n_initializer; i++)
        if (ls_edit_real(w->u, ls_text(g->initializer[i]->name)) != NULL
            && !take_beside(w, g->initializer[i]))
            return false;
    return s->nsave == 0 || w->a->ntensor > before
           || ls_error(w->u->cx, LS_NOWHERE, LS_E_OPTION, NULL,
                       "no module of the file is called '%s' (modules_to_save)", s->save[0]);
}

/* ---- the whole ---- */

/* Puts the nodes that were made behind the one that they follow. */
static void insert(Adapting *w, Onnx__NodeProto **list, size_t *n, Onnx__NodeProto *node)
{
    list[(*n)++] = node;
    for (uint32_t k = 0; k < w->nodes.nmade; k++)
        list[(*n)++] = w->nodes.made[k];
    w->nodes.nmade = 0;
}

static bool none_found(Adapting *w, const LsAdaptable *m, uint32_t n)
{
    const LsAdapterSpec *s = w->a->spec;
    const char *want = s->pattern != NULL ? s->pattern : s->ntarget > 0 ? s->target[0] : "*";
    for (uint32_t k = 0; k < s->ntarget; k++)
        if (!w->named[k])
            want = s->target[k];
    return ls_error(w->u->cx, LS_NOWHERE, LS_E_OPTION,
                    n > 0 ? ls_arena_printf(w->u->cx->arena, "modules are called such as '%s'",
                                            m[n / 2].module)
                          : NULL,
                    "no module that can have an adapter is called '%s'", want);
}

static bool all_named(const Adapting *w)
{
    for (uint32_t k = 0; k < w->a->spec->ntarget; k++)
        if (!w->named[k])
            return false;
    return w->a->nadapted > 0;
}

static bool open_values(Adapting *w)
{
    LsCtx *cx = w->u->cx;
    bool ok = ls_adapter_values_open(&w->values, cx, w->a->spec);
    w->further = ls_arena_alloc(cx->arena, w->a->nfurther + 1u, sizeof *w->further);
    for (uint32_t k = 0; ok && k < w->a->nfurther; k++)
        ok = ls_adapter_values_open(&w->further[k], cx, w->a->further[k]);
    return ok;
}

static bool end_values(Adapting *w)
{
    bool ok = ls_adapter_values_end(&w->values);
    for (uint32_t k = 0; ok && k < w->a->nfurther; k++)
        ok = ls_adapter_values_end(&w->further[k]);
    return ok;
}

bool ls_adapt(LsEditor *u, LsAdapters *a, int opset)
{
    LsArena *arena = u->cx->arena;
    Adapting w = {.u = u, .a = a, .opset = opset, .nodes.u = u};
    uint32_t n, next = 0;
    size_t nnode = 0;
    const LsAdaptable *m = ls_adaptables(u, &n);
    Onnx__NodeProto **list =
        ls_arena_alloc(arena, u->g->n_node + 24 * (size_t)n + 1, sizeof *list);
    w.named = ls_arena_alloc(arena, a->spec->ntarget + 1u, sizeof *w.named);
    a->ntensor = a->nadapted = a->nchange = 0;          /* a file may be opened again */
    a->trained = a->made = (LsNames){.arena = arena};
    if (!open_values(&w))
        return false;
    for (size_t i = 0; i < u->g->n_node; i++) {
        if (next < n && m[next].at == i) {
            const LsAdaptable *one = &m[next++];
            if (is_asked(&w, one) && !adapt(&w, one))
                return false;
        }
        insert(&w, list, &nnode, u->g->node[i]);
    }
    u->g->node = list;
    u->g->n_node = nnode;
    if (!all_named(&w))
        return none_found(&w, m, n);
    a->config = ls_adapter_config_text(arena, a->spec);
    return take_saved(&w) && end_values(&w);
}
