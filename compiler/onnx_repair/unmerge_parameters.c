/* compiler/onnx_repair/unmerge_parameters.c -- separates parameters that an exporter merged because
 * their initial values are equal. unmerge_parameters.h says how merged parameters are
 * recognised. */
#include "compiler/onnx_repair/unmerge_parameters.h"

#include <string.h>

#include "compiler/onnx_file/onnx_domain.h"
#include "compiler/onnx_file/onnx_metadata.h"
#include "compiler/onnx_repair/unfold_parameters.h"
#include "compiler/onnx_repair/module_scope.h"
#include "compiler/onnx_repair/single_bias.h"
#include "compiler/onnx_file/onnx_wire.h"

/* Makes operand k of p read a copy of its initializer. */
static const char *give_copy(LsEditor *u, Onnx__NodeProto *p, size_t k, const char *like)
{
    const Onnx__TensorProto *t = ls_edit_real(u, p->input[k]);
    const char *name = ls_edit_fresh(u, like);
    Onnx__TensorProto *copy = ls_arena_alloc(u->cx->arena, 1, sizeof *copy);
    *copy = *t;
    copy->name = ls_arena_strdup(u->cx->arena, name);
    ls_edit_add_initializer(u, copy);
    u->reads[ls_names_find(&u->names, p->input[k])]--;
    p->input[k] = copy->name;
    return copy->name;
}

static bool is(const Onnx__NodeProto *p, const char *op)
{
    return strcmp(ls_text(p->op_type), op) == 0 && ls_onnx_domain(p->domain)[0] == '\0';
}

static bool is_norm(const Onnx__NodeProto *p)
{
    return is(p, "LayerNormalization") || is(p, "BatchNormalization")
           || is(p, "InstanceNormalization") || is(p, "GroupNormalization")
           || is(p, "RMSNormalization");
}

static bool uniform(LsEditor *u, const Onnx__TensorProto *t)
{
    LsReals r;
    return ls_edit_reals(u, t, &r) && !ls_edit_differs_within(u, t);
}

/* ---- from an exporter's notes of calls ---- */

typedef struct Trace {
    LsEditor *u;
    LsNames known;              /* placeholders of tensors that the file still contains, in any
                                 * form */
    bool *meant;                /* by name id: some call reads the initializer under its own
                                 * placeholder */
} Trace;

static const char *placeholder_of(const LsEditor *u, const char *name)
{
    const LsOnnxSource *s = ls_onnx_source(u->s, name);
    return s->placeholder != NULL ? s->placeholder
                                  : ls_source_placeholder(u->cx->arena, s->kind, name);
}

/* A node that a rule merged from several carries the call of one of them. */
static const char *call_of(const LsEditor *u, const Onnx__NodeProto *p)
{
    LsArena *a = u->cx->arena;
    return ls_onnx_meta(a, &p->base, LS_META_RULE) != NULL
               ? NULL
               : ls_onnx_meta(a, &p->base, LS_META_CALL);
}

static bool reads_placeholder(const LsEditor *u, const char *call, const char *placeholder)
{
    for (const char *s; (s = ls_meta_placeholder(u->cx->arena, &call)) != NULL;)
        if (strcasecmp(s, placeholder) == 0)
            return true;
    return false;
}

/* The module's parameter or buffer that operand k is, or was folded from; NULL: not noted, or
 * several. */
static const char *declared(const LsEditor *u, const Onnx__NodeProto *p, size_t k)
{
    const char *name = ls_text(p->input[k]), *from;
    const LsOnnxSource *s = ls_onnx_source(u->s, name);
    if (ls_edit_real(u, name) == NULL)
        return NULL;
    if (s->kind == LS_FROM_PARAMETER || s->kind == LS_FROM_BUFFER)
        return name;
    return ls_source_parameters(u->cx->arena, u->s, s->folded_from, &from) == 1 ? from : NULL;
}

static void learn(Trace *t)
{
    LsEditor *u = t->u;
    LsArena *a = u->cx->arena;
    for (uint32_t id = 1; id <= u->s->names.n; id++) {
        const LsOnnxSource *s = &u->s->item[id];
        const char *list = s->folded_from;
        if (s->kind != LS_FROM_UNKNOWN)
            ls_names_add(&t->known, placeholder_of(u, u->s->names.name[id]));
        for (const char *name; list != NULL && (name = ls_meta_item(a, &list)) != NULL;) {
            ls_names_add(&t->known, ls_source_placeholder(a, LS_FROM_PARAMETER, name));
            ls_names_add(&t->known, ls_source_placeholder(a, LS_FROM_BUFFER, name));
        }
    }
    for (size_t i = 0; i < u->g->n_node; i++) {
        const Onnx__NodeProto *p = u->g->node[i];
        const char *call = call_of(u, p);
        for (size_t k = 0; call != NULL && k < p->n_input; k++)
            if (declared(u, p, k) != NULL
                && reads_placeholder(u, call, placeholder_of(u, declared(u, p, k))))
                t->meant[ls_names_find(&u->names, p->input[k])] = true;
    }
}

static bool ends_in_leaf(const char *placeholder, const char *name)
{
    const char *last = ls_source_leaf(name);
    size_t n = strlen(placeholder), m = strlen(last);
    return n > m && placeholder[n - m - 1] == '_' && strcasecmp(placeholder + n - m, last) == 0;
}

/* The parameter of the call that the file lacks and that may have been merged into this tensor: it
 * has the same last name, or, where all elements are equal, it is the only missing one. NULL:
 * none. */
static const char *gone_parameter(Trace *t, const char *call, const char *tensor, const char *name)
{
    const char *only = NULL, *s;
    int n = 0;
    while ((s = ls_meta_placeholder(t->u->cx->arena, &call)) != NULL) {
        const char *low = ls_source_lower(t->u->cx->arena, s);
        if (low[0] == 'c' || ls_names_find(&t->known, low) != 0)
            continue;
        if (ends_in_leaf(s, name))
            return s;
        only = n++ == 0 ? s : NULL;
    }
    return only != NULL && uniform(t->u, ls_edit_real(t->u, tensor)) ? only : NULL;
}

/* The name for a placeholder: dots replace _ where a name with the same beginning has them, and
 * before the last word if that is the same. */
static const char *like_name(LsArena *a, const char *placeholder, const char *from)
{
    char *name = ls_arena_strdup(a, placeholder);
    size_t n = strlen(name), m = strlen(ls_source_leaf(from));
    for (size_t k = 0; name[k] != '\0' && from[k] != '\0'; k++) {
        if (name[k] == '_' && from[k] == '.')
            name[k] = '.';
        else if (name[k] != from[k])
            break;
    }
    if (n > m && name[n - m - 1] == '_' && strcmp(name + n - m, ls_source_leaf(from)) == 0)
        name[n - m - 1] = '.';
    return name;
}

/* blocks.0.ln2.weight, when the node's modules end in blocks.0.ln2; else the name for the
 * placeholder. */
static const char *module_name(LsEditor *u, const Onnx__NodeProto *p, const char *placeholder,
                               const char *from)
{
    LsArena *a = u->cx->arena;
    const char *list = ls_onnx_meta(a, &p->base, LS_META_SCOPES), *module = "", *last = "", *s;
    while (list != NULL && (s = ls_meta_item(a, &list)) != NULL) {
        module = last;
        last = s;
    }
    const char *start =
        ls_arena_printf(a, "%s_", ls_source_placeholder(a, LS_FROM_PARAMETER, module));
    size_t n = strlen(start);
    if (module[0] != '\0' && strncasecmp(placeholder + 1, start + 1, n - 1) == 0)
        return ls_arena_printf(a, "%s.%s", module, placeholder + n);
    return like_name(a, placeholder + 2, from);
}

/* A norm whose module has no parameters: the call has None in the operand's place. */
static bool is_literal(LsEditor *u, const Onnx__NodeProto *p, const char *call, size_t k)
{
    int at = is(p, "LayerNormalization") ? (int)k + 1 : (int)k;
    const char *arg =
        is_norm(p) && k >= 1 && k <= 2 ? ls_meta_argument(u->cx->arena, call, at) : NULL;
    return arg != NULL && strcmp(arg, "None") == 0;
}

static void untie_operand(Trace *t, LsNames *made, Onnx__NodeProto *p, const char *call, size_t k)
{
    LsEditor *u = t->u;
    LsOnnxEdits *e = u->e;
    const char *from = p->input[k];
    if (is_literal(u, p, call, k)) {
        const char *own =
            ls_arena_printf(u->cx->arena, "%s.%s", ls_text(p->output[0]), ls_source_leaf(from));
        ls_edit_note(u, &e->literal, &e->nliteral, &e->cap_literal, give_copy(u, p, k, own), from);
        return;
    }
    if (!t->meant[ls_names_find(&u->names, from)])
        return;
    const char *like = declared(u, p, k), *gone = gone_parameter(t, call, from, like);
    if (gone == NULL)
        return;
    uint32_t id = ls_names_find(made, gone);
    if (id != 0) {              /* another node of the module already has its copy */
        p->input[k] = (char *)e->untied[id - 1].name;
        return;
    }
    const char *name = give_copy(u, p, k, module_name(u, p, gone, like));
    ls_names_add(made, gone);
    ls_edit_note(u, &e->untied, &e->nuntied, &e->cap_untied, name, from);
}

/* Finds parameters of the module that the file contains in no form, such as a bias of zeros that a
 * rule removed. (Unoptimised files lack only second names of tied parameters.) */
static void find_lost(Trace *t, const LsNames *made)
{
    LsEditor *u = t->u;
    const LsNames *of = &u->s->parameters;
    for (uint32_t id = 1; u->s->optimised && id <= of->n; id++) {
        const char *name = ls_source_placeholder(u->cx->arena, LS_FROM_PARAMETER, of->name[id]);
        bool there = ls_names_find(&t->known, name) != 0 || ls_edit_real(u, of->name[id]) != NULL;
        for (uint32_t k = 1; k <= made->n && !there; k++)
            there = strcasecmp(made->name[k], name) == 0;
        if (!there)
            ls_edit_note(u, &u->e->lost, &u->e->nlost, &u->e->cap_lost, of->name[id], NULL);
    }
}

static void untie_by_trace(LsEditor *u)
{
    Trace t = {.u = u, .known = {.arena = u->scratch}};
    LsNames made = {.arena = u->scratch};
    t.meant = ls_arena_alloc(u->scratch, u->nid, sizeof *t.meant);
    learn(&t);
    for (size_t i = 0; i < u->g->n_node; i++) {
        Onnx__NodeProto *p = u->g->node[i];
        const char *call = call_of(u, p);
        for (size_t k = 0; call != NULL && k < p->n_input; k++)
            if (declared(u, p, k) != NULL && ls_edit_reads(u, p->input[k]) > 1
                && !reads_placeholder(u, call, placeholder_of(u, declared(u, p, k))))
                untie_operand(&t, &made, p, call, k);
    }
    find_lost(&t, &made);
}

/* ---- from the readers, in files without notes ---- */

/* PyTorch's older exporter merges nothing in training form, and merges by Identity nodes in other
 * forms; other programs that rewrite its files merge, too. The newer exporter calls its nodes
 * node_conv2d and the like; its notes may have been stripped. */
static bool has_scopes(const Onnx__ModelProto *m)
{
    for (size_t i = 0; i < m->graph->n_node; i++)
        if (strncmp(ls_text(m->graph->node[i]->name), "node_", 5) == 0)
            return false;
    return strcmp(ls_text(m->producer_name), "pytorch") == 0;
}

/* The initializer that the product behind an operand of Add has as a factor; NULL: none. */
static const char *factor_behind(LsEditor *u, const char *operand)
{
    enum { FAR = 3 };           /* views between the product and the sum */
    for (int step = 0; step <= FAR; step++) {
        const uint32_t id = ls_names_find(&u->names, operand);
        const Onnx__NodeProto *p = id < u->nid ? u->maker[id] : NULL;
        if (p == NULL)
            return NULL;
        if (is(p, "MatMul") || is(p, "Conv"))
            return ls_edit_real(u, p->input[1]) != NULL ? ls_text(p->input[1]) : NULL;
        if (!is(p, "Reshape") && !is(p, "Transpose") && !is(p, "Squeeze"))
            return NULL;
        operand = ls_text(p->input[0]);
    }
    return NULL;
}

/* The weight that belongs to a bias: nodes that share it share the bias, too. NULL: operand k is no
 * bias. */
static const char *weight_beside(LsEditor *u, const Onnx__NodeProto *p, size_t k)
{
    if (is(p, "Add") && p->n_input == 2)
        return factor_behind(u, ls_text(p->input[1 - k]));
    bool bias = k == 2 && (is(p, "Gemm") || is(p, "Conv") || is(p, "ConvTranspose"));
    return bias ? ls_text(p->input[1]) : NULL;
}

/* Where the node's name tells its module, factors and terms are checked, too. */
static bool mergeable(LsEditor *u, const Onnx__NodeProto *p, size_t k, bool scopes)
{
    if (scopes && (is(p, "Add") || is(p, "Mul") || is(p, "PRelu")))
        return true;
    return (is_norm(p) && (k == 1 || k == 2)) || weight_beside(u, p, k) != NULL;
}

/* The parameter's name in the module that the node's name tells; NULL: it is the module's own, no
 * module is told, or it is no parameter but a result that an optimizer computed. */
static const char *meant_by_scope(LsEditor *u, const Onnx__NodeProto *p, const char *from)
{
    const char *module = ls_scope_module(u->cx->arena, ls_text(p->name));
    if (module == NULL || from[0] == '/' || strchr(from, '.') == NULL
        || ls_scope_owns(module, from))
        return NULL;
    return ls_arena_printf(u->cx->arena, "%s.%s", module, ls_source_leaf(from));
}

/* scopes: files whose nodes tell their modules, so that only parameters of other modules count as
 * merged. */
static void untie_by_value(LsEditor *u, bool scopes)
{
    LsOnnxEdits *e = u->e;
    LsNames seen = {.arena = u->scratch}; /* initializer, and the weight beside which it was read */
    LsNames kept = {.arena = u->scratch};
    for (size_t i = 0; i < u->g->n_node; i++) {
        Onnx__NodeProto *p = u->g->node[i];
        for (size_t k = scopes || is(p, "Add") ? 0 : 1; k < p->n_input && k < 3; k++) {
            const char *from = ls_text(p->input[k]), *beside = weight_beside(u, p, k);
            const Onnx__TensorProto *t = ls_edit_real(u, from);
            if (t == NULL || !mergeable(u, p, k, scopes) || (!scopes && ls_edit_count(t) < 2))
                continue;
            const char *key = ls_arena_printf(u->scratch, "%s\n%s", from,
                                              beside != NULL ? beside : "");
            bool again = ls_names_find(&kept, from) != 0;
            bool shared = beside != NULL && ls_names_find(&seen, key) != 0;
            ls_names_add(&kept, from);
            ls_names_add(&seen, key);
            const char *name = scopes ? meant_by_scope(u, p, from) : from;
            if ((again || scopes) && name != NULL && !shared && ls_edit_reads(u, from) > 1
                && uniform(u, t))
                ls_edit_note(u, &e->untied, &e->nuntied, &e->cap_untied, give_copy(u, p, k, name),
                             from);
        }
    }
}

/* ---- running statistics ---- */

static bool is_statistic(const Onnx__NodeProto *p, size_t k)
{
    return is(p, "BatchNormalization") && p->n_input == 5 && k >= 3;
}

/* conv1.bn.running_mean, from conv1.bn.weight; else the initializer's own name. */
static const char *statistic_name(LsEditor *u, const Onnx__NodeProto *p, size_t k)
{
    const char *scale = ls_text(p->input[1]), *what = k == 3 ? "running_mean" : "running_var";
    const char *dot = strrchr(scale, '.');
    if (dot == NULL)
        return ls_arena_printf(u->cx->arena, "%s.%s", scale, what);
    return ls_arena_printf(u->cx->arena, "%.*s.%s", (int)(dot - scale), scale, what);
}

/* Every batch norm has its own statistics: an initializer with another use, too, or read by two
 * batch norms, was merged. */
static void untie_statistics(LsEditor *u)
{
    LsOnnxEdits *e = u->e;
    uint32_t *follow = ls_arena_alloc(u->scratch, u->nid, sizeof *follow);
    bool *kept = ls_arena_alloc(u->scratch, u->nid, sizeof *kept);
    for (size_t i = 0; i < u->g->n_node; i++)
        for (size_t k = 3; is_statistic(u->g->node[i], k) && k < 5; k++)
            follow[ls_names_find(&u->names, ls_text(u->g->node[i]->input[k]))]++;
    for (size_t i = 0; i < u->g->n_node; i++)
        for (size_t k = 3; is_statistic(u->g->node[i], k) && k < 5; k++) {
            Onnx__NodeProto *p = u->g->node[i];
            const char *from = ls_text(p->input[k]);
            uint32_t id = ls_names_find(&u->names, from);
            bool alone = u->reads[id] == follow[id] && !kept[id];
            if (ls_edit_real(u, from) == NULL || alone) {
                kept[id] = true;
                continue;
            }
            follow[id]--;
            ls_edit_note(u, &e->statistic, &e->nstatistic, &e->cap_statistic,
                         give_copy(u, p, k, statistic_name(u, p, k)), from);
        }
}

const LsOnnxEdits *ls_onnx_untie(LsCtx *cx, Onnx__ModelProto *m, LsDataFolder data,
                                 const LsOnnxSources *s, bool tie)
{
    LsEditor u = {.cx = cx, .g = m->graph, .s = s, .data = data,
                  .e = ls_arena_alloc(cx->arena, 1, sizeof *u.e)};
    ls_onnx_hoist_results(cx->arena, m->graph);
    ls_edit_index(&u);
    untie_statistics(&u);
    ls_onnx_retie(&u);
    if (strcmp(ls_text(m->producer_name), "tf2onnx") == 0)
        ls_onnx_single_bias(&u);
    if (!tie && s->traced)
        untie_by_trace(&u);
    else if (!tie)
        untie_by_value(&u, has_scopes(m));
    ls_edit_finish(&u);
    return u.e;
}
