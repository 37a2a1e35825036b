/* compiler/onnx/onnx_moving_buffers.c -- see onnx_moving_buffers.h.
 *
 * Files of torch.export list them: a line VALUE: BUFFER_MUTATION target='BUFFER'. Without such
 * notes, names tell a spectral norm: weight_u beside weight_orig, or parametrizations.weight.0._u
 * beside parametrizations.weight.original. The statistics of batch norms, which the program does
 * change, are none of them. */
#include "compiler/onnx/onnx_moving_buffers.h"

#include <string.h>

#include "compiler/ir/graph.h"
#include "compiler/onnx/import_state.h"
#include "compiler/onnx_file/onnx_metadata.h"

typedef struct Moving {
    LsImport *im;
    LsNames buffers;
    LsNames stops;              /* values that the module computes without a gradient, and the graph
                                 * with one */
} Moving;

static bool is_counter_or_statistic(const char *leaf)
{
    return strcmp(leaf, "num_batches_tracked") == 0 || strcmp(leaf, "running_mean") == 0
           || strcmp(leaf, "running_var") == 0;
}

static bool has_gradient(const LsImport *im, const char *name)
{
    const LsValueId v = im->value[ls_names_find(&im->m->names, name)].v;
    return name[0] != '\0' && ls_names_find(&im->m->names, name) != 0 && ls_is(v)
           && im->g->value[v.i].kind == LS_V_TEMP && ls_type(im->g, v) == LS_REAL
           && !im->g->value[v.i].stopped;
}

/* ---- by the exporter's notes ---- */

static void take_mutation(Moving *w, const char *value, const char *buffer)
{
    const LsOnnxModel *m = w->im->m;
    const uint32_t id = ls_names_find(&m->names, value), of = ls_names_find(&m->names, buffer);
    const bool read = of != 0 && w->im->reads[of] > 0, made = id != 0 && m->maker[id] >= 0;
    if (is_counter_or_statistic(ls_source_leaf(buffer)) || (!read && !made)
        || w->im->verdict[of].role == LS_ROLE_STATISTIC
        || (made
            && strcmp(ls_text(m->node[m->maker[id]].proto->op_type), "BatchNormalization") == 0))
        return;
    ls_names_add(&w->buffers, buffer);
    if (has_gradient(w->im, value))
        ls_names_add(&w->stops, value);
}

static void take_notes(Moving *w)
{
    static const char word[] = ": BUFFER_MUTATION target=";
    LsArena *a = w->im->cx->arena;
    const char *text = ls_onnx_meta(a, &w->im->m->graph->base, LS_META_SIGNATURE);
    for (const char *p = text; p != NULL && (p = strstr(p, word)) != NULL;) {
        const char *from = p;
        while (from > text && from[-1] != '\n' && from[-1] != ' ')
            from--;
        const char *value = ls_arena_printf(a, "%.*s", (int)(p - from), from);
        p += sizeof word - 1;
        const char *buffer = ls_meta_item(a, &p);
        if (buffer != NULL)
            take_mutation(w, value, buffer);
    }
}

/* ---- by names ---- */

static bool is_there(const LsImport *im, const char *name)
{
    const uint32_t id = ls_names_find(&im->m->names, name);
    return id != 0 && im->m->maker[id] == LS_MADE_INITIALIZER;
}

/* The weight whose norm that vector belongs to; NULL: it is no such vector. */
static const char *normed(const LsImport *im, const char *name)
{
    LsArena *a = im->cx->arena;
    const size_t n = strlen(name);
    const char *old =
        n > 2 && name[n - 2] == '_' ? ls_arena_printf(a, "%.*s_orig", (int)n - 2, name) : "";
    const char *new = n > 5 && strncmp(name + n - 5, ".0._", 4) == 0
                          ? ls_arena_printf(a, "%.*s.original", (int)n - 5, name)
                          : "";
    if (n < 2 || (name[n - 1] != 'u' && name[n - 1] != 'v'))
        return NULL;
    return is_there(im, old) ? old : is_there(im, new) ? new : NULL;
}

/* The power iteration divides vectors by their norms; then the weight is divided, and what follows
 * is the network. */
static void follow(Moving *w, const char *vector)
{
    const LsOnnxModel *m = w->im->m;
    bool *from = ls_arena_alloc(w->im->cx->arena, w->im->nname, sizeof *from);
    from[ls_names_find(&m->names, vector)] = true;
    for (uint32_t i = 0; i < m->norder; i++) {
        const Onnx__NodeProto *p = m->node[m->order[i]].proto;
        bool any = false;
        for (size_t k = 0; k < p->n_input; k++)
            any |= from[ls_names_find(&m->names, ls_text(p->input[k]))];
        const bool divides =
            strcmp(ls_text(p->op_type), "Div") == 0 && p->n_input == 2 && p->n_output == 1;
        if (!any || (divides && !from[ls_names_find(&m->names, p->input[0])]))
            continue;
        if (divides && has_gradient(w->im, p->output[0]))
            ls_names_add(&w->stops, p->output[0]);
        for (size_t k = 0; k < p->n_output; k++)
            from[ls_names_find(&m->names, ls_text(p->output[k]))] = true;
        from[0] = false;        /* of operands and results that are left out */
    }
}

static void take_names(Moving *w)
{
    const Onnx__GraphProto *g = w->im->m->graph;
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = ls_text(g->initializer[i]->name);
        if (normed(w->im, name) == NULL || ls_names_find(&w->buffers, name) != 0)
            continue;
        ls_names_add(&w->buffers, name);
        follow(w, name);
    }
}

void ls_onnx_hint_moving_buffers(LsImport *im)
{
    LsArena *a = im->cx->arena;
    Moving w = {im, {.arena = a}, {.arena = a}};
    const char *list = "", *stops = "";
    take_notes(&w);
    if (w.buffers.n == 0)
        take_names(&w);
    for (uint32_t k = 1; k <= w.buffers.n; k++)
        list = ls_arena_printf(a, "%s%s'%s'", list, k > 1 ? ", " : "", w.buffers.name[k]);
    for (uint32_t k = 1; k <= w.stops.n; k++)
        stops =
            ls_arena_printf(a, "%s%s--stop-gradient %s", stops, k > 1 ? " " : "", w.stops.name[k]);
    if (w.buffers.n == 0)
        return;
    const bool many = w.buffers.n > 1;
    ls_warn(
        im->cx, LS_NOWHERE,
        w.stops.n > 0 ? ls_arena_printf(
            a,
            "%s stops the gradient where the module's torch.no_grad() does, if these values are "
            "computed there",
            stops)
                      : NULL,
        "%u buffer%s that the module itself changes in every step, as a spectral norm does, stay%s "
        "as in the file (%s)%s",
        w.buffers.n, many ? "s" : "", many ? "" : "s", list,
        w.stops.n > 0 ? "; and gradients flow through the values that the module computes for them"
                      : "");
}
