/* compiler/onnx_repair/tensor_origin.c -- collects an exporter's notes about tensors, and
 * classifies names. */
#include "compiler/onnx_repair/tensor_origin.h"

#include "compiler/onnx_file/onnx_metadata.h"
#include "compiler/onnx_file/onnx_wire.h"

#include <ctype.h>
#include <string.h>

const char *ls_source_lower(LsArena *a, const char *s)
{
    char *t = ls_arena_strdup(a, s);
    for (char *p = t; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    return t;
}

static LsSourceKind kind_of(const char *text)
{
    if (text == NULL)
        return LS_FROM_UNKNOWN;
    if (strcmp(text, "PARAMETER") == 0)
        return LS_FROM_PARAMETER;
    if (strcmp(text, "BUFFER") == 0)
        return LS_FROM_BUFFER;
    return strcmp(text, "CONSTANT_TENSOR") == 0 ? LS_FROM_CONSTANT : LS_FROM_UNKNOWN;
}

/* A note at the value takes precedence over a note at the tensor. */
static void take(LsArena *a, LsOnnxSources *s, const char *name, const ProtobufCMessage *m)
{
    const char *placeholder = ls_onnx_meta(a, m, LS_META_PLACEHOLDER);
    LsOnnxSource new = {kind_of(ls_onnx_meta(a, m, LS_META_KIND)),
                        placeholder != NULL ? ls_source_lower(a, placeholder) : NULL,
                        ls_onnx_meta(a, m, LS_META_FOLDED)};
    if (new.kind != LS_FROM_UNKNOWN || new.folded_from != NULL)
        s->item[ls_names_add(&s->names, name)] = new;
    s->optimised |= new.folded_from != NULL;
    s->traced |= new.kind == LS_FROM_PARAMETER || new.kind == LS_FROM_BUFFER;
}

static void take_node(LsArena *a, LsOnnxSources *s, const Onnx__NodeProto *p)
{
    const char *call = ls_onnx_meta(a, &p->base, LS_META_CALL);
    const char *rule = ls_onnx_meta(a, &p->base, LS_META_RULE), *name;
    while (call != NULL && (name = ls_meta_placeholder(a, &call)) != NULL)
        ls_names_add(&s->placeholders, ls_source_lower(a, name));
    s->optimised |= rule != NULL;
    if (rule == NULL || strstr(rule, "FuseBatchNorm") == NULL || p->n_input < 2)
        return;
    s->folded_norm = ls_arena_grow(a, s->folded_norm, s->nfolded_norms, s->nfolded_norms + 1,
                                   sizeof *s->folded_norm, &s->cap_folded_norms);
    s->folded_norm[s->nfolded_norms++] =
        (LsUntied){ls_text(p->input[p->n_input - 1]), ls_text(p->name)};
}

static void take_signature(LsArena *a, LsOnnxSources *s, const char *text)
{
    static const char word[] = ": PARAMETER target=";
    for (const char *p = text; p != NULL && (p = strstr(p, word)) != NULL;) {
        p += sizeof word - 1;
        const char *name = ls_meta_item(a, &p);
        if (name != NULL)
            ls_names_add(&s->parameters, name);
    }
}

LsOnnxSources *ls_onnx_sources(LsArena *a, const Onnx__GraphProto *g)
{
    LsOnnxSources *s = ls_arena_alloc(a, 1, sizeof *s);
    *s = (LsOnnxSources){
        .names = {.arena = a}, .placeholders = {.arena = a}, .parameters = {.arena = a}};
    s->item = ls_arena_alloc(a, g->n_initializer + g->n_value_info + 1, sizeof *s->item);
    for (size_t i = 0; i < g->n_initializer; i++)
        take(a, s, ls_text(g->initializer[i]->name), &g->initializer[i]->base);
    for (size_t i = 0; i < g->n_value_info; i++)
        take(a, s, ls_text(g->value_info[i]->name), &g->value_info[i]->base);
    for (size_t i = 0; i < g->n_node; i++)
        take_node(a, s, g->node[i]);
    take_signature(a, s, ls_onnx_meta(a, &g->base, LS_META_SIGNATURE));
    return s;
}

const LsOnnxSource *ls_onnx_source(const LsOnnxSources *s, const char *name)
{
    return &s->item[ls_names_find(&s->names, name)];    /* row 0 is unknown */
}

const char *ls_source_placeholder(LsArena *a, LsSourceKind kind, const char *name)
{
    char *t = ls_arena_printf(a, "%c_%s", kind == LS_FROM_BUFFER ? 'b' : 'p', name);
    for (char *p = t; *p != '\0'; p++)
        *p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '_';
    return t;
}

const char *ls_source_leaf(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}

bool ls_source_weight_name(const char *name)
{
    static const char *const word[] = {"weight", "bias",  "gamma",    "beta",  "kernel",
                                       "scale",  "embed", "original", "alpha", "token"};
    const char *last = ls_source_leaf(name);
    for (size_t k = 0; k < sizeof word / sizeof *word; k++)
        if (strcasestr(last, word[k]) != NULL)
            return true;
    return false;
}

static bool is_parameter(LsArena *a, const LsOnnxSources *s, const char *name)
{
    LsSourceKind kind = ls_onnx_source(s, name)->kind;
    if (kind != LS_FROM_UNKNOWN)
        return kind == LS_FROM_PARAMETER;
    if (s->parameters.n > 0)
        return ls_names_find(&s->parameters, name) != 0;
    if (ls_names_find(&s->placeholders, ls_source_placeholder(a, LS_FROM_PARAMETER, name)) != 0)
        return true;
    return strchr(name, '.') != NULL && ls_source_weight_name(name)
        && ls_names_find(&s->placeholders, ls_source_placeholder(a, LS_FROM_BUFFER, name)) == 0;
}

uint32_t ls_source_parameters(LsArena *a, const LsOnnxSources *s, const char *folded_from,
                              const char **first)
{
    uint32_t n = 0;
    *first = NULL;
    for (const char *name; folded_from != NULL && (name = ls_meta_item(a, &folded_from)) != NULL;)
        if (is_parameter(a, s, name) && n++ == 0)
            *first = name;
    return n;
}

const char *ls_source_parameter_list(LsArena *a, const LsOnnxSources *s, const char *folded_from)
{
    const char *list = "";
    for (const char *name; folded_from != NULL && (name = ls_meta_item(a, &folded_from)) != NULL;)
        if (is_parameter(a, s, name))
            list = ls_arena_printf(a, "%s%s'%s'", list, list[0] != '\0' ? ", " : "", name);
    return list;
}

static bool ends(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && strcmp(s + n - m, tail) == 0;
}

/* The text is `prefix`, then only digits. */
static bool numbered(const char *s, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(s, prefix, n) == 0 && s[n] != '\0' && s[n + strspn(s + n, "0123456789")] == '\0';
}

bool ls_source_made_up(const char *name)
{
    static const char *const counted[] = {"",
                                          "val_",
                                          "_val_",
                                          "_v_",
                                          "const_",
                                          "constant_",
                                          "Constant_",
                                          "lifted_tensor_",
                                          "c_lifted_tensor_",
                                          "_tensor_constant"};
    static const char *const prefix[] = {"onnx::", "const_fold_opt__", "Const__", "const_scalar__"};
    static const char *const tail[] = {"/x:0", "/y:0", "/Const:0", "_cast"};
    for (size_t k = 0; k < sizeof counted / sizeof *counted; k++)
        if (numbered(name, counted[k]))
            return true;
    for (size_t k = 0; k < sizeof prefix / sizeof *prefix; k++)
        if (strncmp(name, prefix[k], strlen(prefix[k])) == 0)
            return true;
    for (size_t k = 0; k < sizeof tail / sizeof *tail; k++)
        if (ends(name, tail[k]))
            return true;
    const char *out = strstr(name, "_output_");
    return (name[0] == '/' && out != NULL && numbered(out, "_output_"))
        || strstr(name, "/Constant_output_") != NULL;
}

bool ls_source_result_name(const char *name)
{
    const char *out = strstr(name, "_output_");
    return numbered(name, "_v_")
           || (name[0] == '/' && out != NULL && numbered(out, "_output_")
               && strstr(name, "/Constant_") == NULL);
}
