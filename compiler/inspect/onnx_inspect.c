/* compiler/inspect/onnx_inspect.c -- collects the report as plain data, with every dimension
 * bound. */
#include "compiler/inspect/onnx_inspect.h"

#include "base/heap.h"
#include "base/plain_text.h"
#include "compiler/inspect/onnx_inspect_report.h"
#include "compiler/onnx/onnx_caches.h"
#include "compiler/onnx/onnx_import.h"
#include "compiler/onnx/onnx_order.h"
#include "compiler/onnx_file/onnx_tensor.h"
#include "compiler/passes/passes.h"
#include "compiler/patterns/patterns.h"

#include <stdlib.h>
#include <string.h>

static void count(LsInspectReport *r, LsInspectCounts *c, const char *name, const char *first,
                  uint32_t room)
{
    if (c->item == NULL) {
        c->names = (LsNames){.arena = r->cx->arena};
        c->item = ls_arena_alloc(r->cx->arena, room + 2, sizeof *c->item);
    }
    LsInspectCount *item = &c->item[ls_names_add(&c->names, name)];
    if (item->n++ == 0)
        *item = (LsInspectCount){name, 1, first};
}

static void count_ops(LsInspectReport *r)
{
    for (uint32_t i = 0; i < r->m->nnode; i++) {
        const LsOnnxFlat *f = &r->m->node[i];
        const char *name = ls_flat_op_name(r->cx->arena, f);
        count(r, &r->ops, name, f->name, r->m->nnode);
        if (!ls_flat_supported(f))
            count(r, &r->unsupported, name, f->name, r->m->nnode);
    }
}

static bool bound(const LsImportOptions *o, const char *symbol)
{
    for (int i = 0; i < o->ndim; i++)
        if (strcmp(o->dim[i].name, symbol) == 0)
            return true;
    return false;
}

static bool shaped(const LsImportOptions *o, const char *input)
{
    for (int i = 0; i < o->nshape; i++)
        if (strcmp(o->shape[i].input, input) == 0)
            return true;
    return false;
}

/* The number of new tokens, by the options or the file; else 1. */
static int64_t tokens(const Onnx__GraphProto *g, const LsImportOptions *o)
{
    const Onnx__ValueInfoProto *p = ls_cache_tokens(g);
    const Onnx__TensorShapeProto__Dimension *d = p != NULL ? ls_inspect_shape(p)->dim[1] : NULL;
    for (int i = 0; p != NULL && i < o->nshape; i++)
        if (strcmp(o->shape[i].input, ls_text(p->name)) == 0 && o->shape[i].shape.rank > 1)
            return o->shape[i].shape.dim[1];
    for (int i = 0; d != NULL && i < o->ndim; i++)
        if (strcmp(o->dim[i].name, ls_inspect_symbol(d)) == 0)
            return o->dim[i].size;
    return d != NULL && !ls_inspect_is_open(d) ? d->dim_value : 1;
}

/* Gives every input of known rank a full shape, but for caches without tokens; open dimensions are
 * 1, unless the options say more. */
static void bind_open(LsInspectReport *r, LsImportOptions *o)
{
    const Onnx__GraphProto *g = r->m->graph;
    LsShapeBinding *list =
        ls_arena_alloc(r->cx->arena, g->n_input + (size_t)o->nshape + 1, sizeof *list);
    int n = o->nshape;
    const bool caches = ls_cache_any(o, g);
    if (n > 0)
        memcpy(list, o->shape, (size_t)n * sizeof *list);
    for (size_t i = 0; i < g->n_input; i++) {
        const char *name = ls_text(g->input[i]->name);
        const Onnx__TensorShapeProto *s = ls_inspect_shape(g->input[i]);
        if (r->m->maker[ls_names_find(&r->m->names, name)] != LS_MADE_INPUT || shaped(o, name)
            || ls_cache_is_empty(o, g->input[i]))
            continue;
        if (s == NULL || s->n_dim > LS_MAX_RANK) {
            ls_names_add(&r->open, ls_arena_printf(r->cx->arena, "--shape %s=AxBx...", name));
            continue;
        }
        LsShape shape = {.rank = (int)s->n_dim};
        for (int k = 0; k < shape.rank; k++) {
            const char *symbol = ls_inspect_symbol(s->dim[k]);
            shape.dim[k] = ls_inspect_is_open(s->dim[k]) ? 1 : s->dim[k]->dim_value;
            if (!ls_inspect_is_open(s->dim[k]) || (k == 0 && o->batch > 0 && !bound(o, symbol))) {
                shape.dim[k] = ls_inspect_is_open(s->dim[k]) ? o->batch : shape.dim[k];
                continue;
            }
            if (caches && ls_cache_is_total(symbol) && !bound(o, symbol)) {
                shape.dim[k] = tokens(g, o);
                continue;
            }
            for (int d = 0; d < o->ndim; d++)
                if (strcmp(o->dim[d].name, symbol) == 0)
                    shape.dim[k] = o->dim[d].size;
            if (!bound(o, symbol))
                ls_names_add(&r->open, symbol[0] != '\0'
                             ? ls_arena_printf(r->cx->arena, "--dim %s=SIZE", symbol)
                             : ls_arena_printf(r->cx->arena, "--shape %s=AxBx...", name));
        }
        list[n++] = (LsShapeBinding){name, shape};
    }
    o->shape = list;
    o->nshape = n;
}

static void add_tensor(LsInspectTensors *t, const LsValue *v)
{
    t->n++;
    t->elements += ls_count(&v->shape);
}

/* By value: real, and depends on a trained parameter. */
static bool *find_moving(LsArena *a, const LsGraph *g)
{
    bool *moves = ls_arena_alloc(a, g->nvalue, sizeof *moves);
    for (uint32_t i = 1; i < g->nvalue; i++)
        moves[i] = g->value[i].kind == LS_V_PARAM;
    for (uint32_t i = 1; i < g->nnode; i++)
        for (uint32_t k = 0; k < g->node[i].nin && g->node[i].op != LS_OP_DETACH; k++)
            for (uint32_t j = 0; j < g->node[i].nout; j++)
                moves[g->node[i].out + j] |= moves[g->operand[g->node[i].in + k].i]
                    && g->value[g->node[i].out + j].type == LS_REAL;
    return moves;
}

/* Finds operators without a gradient between a parameter and an output, and parameters that no
 * output depends on, whichever output the loss uses. */
static void find_gradless(LsInspectReport *r, const LsGraph *g)
{
    LsArena *a = r->cx->arena;
    bool *moves = find_moving(a, g), *used = ls_arena_alloc(a, g->nvalue, sizeof *used),
         *taught = ls_arena_alloc(a, g->nvalue, sizeof *taught);   /* would get a gradient */
    for (uint32_t i = 0; i < g->noutput; i++)
        used[g->output[i].i] = taught[g->output[i].i] = ls_type(g, g->output[i]) == LS_REAL;
    for (uint32_t i = g->nnode; i-- > 1;) {
        const LsNode *n = &g->node[i];
        bool live = false, moved = false;
        for (uint32_t k = 0; k < n->nout; k++) {
            live |= used[n->out + k];
            moved |= used[n->out + k] && moves[n->out + k];
        }
        for (uint32_t k = 0; k < n->nin; k++) {
            used[g->operand[n->in + k].i] |= live;
            taught[g->operand[n->in + k].i] |= moved;
        }
        if (moved && ls_op[n->op]->grad == NULL)
            count(r, &r->gradless, ls_op[n->op]->name, n->name, g->nnode);
    }
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].kind == LS_V_PARAM && taught[i])
            r->ntaught++;
        else if (g->value[i].kind == LS_V_PARAM)
            ls_inspect_tell(
                r->to_hazards,
                used[i] ? "the gradient of parameter '%s' is stopped on every way, and it is not "
                          "trained"
                        : "parameter '%s' has no influence on any output and is not trained",
                g->value[i].name);
    if (r->ntaught == 0)
        fprintf(r->to_problems, "no trained parameter has influence on an output\n"
                                "  hint: see --train and --freeze\n");
}

/* Collects the warnings that compile would print when it adds its default loss. Errors do not
 * matter: the file may contain its own loss. */
static void try_loss(LsInspectReport *r, LsGraph *g)
{
    LsCtx cx = {.arena = r->cx->arena, .model = r->cx->model, .max_error = 1, .nerror = 1};
    char *log = NULL, *rest;
    size_t bytes = 0, prefix = strlen(cx.model) + 2;
    cx.log = ls_text_open(&log, &bytes);
    ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_CE});
    ls_text_close(cx.log, &log);
    for (char *s = strtok_r(log, "\n", &rest); s != NULL; s = strtok_r(NULL, "\n", &rest)) {
        bool hint = strncmp(s, "  hint: ", 8) == 0;
        fprintf(r->to_hazards, "%s%s\n", hint ? "" : "with --loss=ce: ", hint ? s : s + prefix);
    }
    free(log);
}

/* Splits the log: warnings are hazards, errors are problems; a hint stays with the line above
 * it. */
static void sort_log(LsInspectReport *r, char *log)
{
    const size_t prefix = strlen(r->cx->model) + 2;
    FILE *to = r->to_problems;
    char *rest;
    for (char *line = strtok_r(log, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "  hint: ", 8) != 0) {
            bool warns = strstr(line, "warning: ") != NULL && strstr(line, "error LS-E") == NULL;
            to = warns ? r->to_hazards : r->to_problems;
            line += strlen(line) > prefix ? prefix : 0;
        }
        fprintf(to, "%s\n", line);
    }
}

static void try_import(LsInspectReport *r, const LsImportOptions *given)
{
    LsImportOptions o = *given;
    LsCtx cx = {.arena = r->cx->arena, .model = r->cx->model, .max_error = r->cx->max_error};
    char *log = NULL;
    size_t bytes = 0;
    o.weightless = true;
    o.training = true;
    bool asked = o.batch > 0 || o.ndim > 0 || o.nshape > 0;
    bind_open(r, &o);
    if (asked && r->open.n == 0) {
        r->bound = o.shape;
        r->nbound = o.nshape;
    }
    cx.log = ls_text_open(&log, &bytes);
    LsGraph *g = ls_onnx_import_model(&cx, r->m, &o);
    ls_text_close(cx.log, &log);
    sort_log(r, log);
    free(log);
    r->imported = g != NULL;
    r->decisions = g != NULL ? g->source.decisions : NULL;
    for (uint32_t i = 1; g != NULL && i < g->nvalue; i++)
        if (ls_is_state(g, (LsValueId){i}))
            add_tensor(g->value[i].kind == LS_V_PARAM ? &r->trained : &r->other, &g->value[i]);
    if (g != NULL) {
        LsCtx quiet = {.arena = r->cx->arena, .model = r->cx->model, .quiet = true};
        if (ls_patterns(&quiet, g))         /* patterns leave fewer operators without a gradient */
            find_gradless(r, g);
        try_loss(r, g);
        return;
    }
    for (size_t i = 0; i < r->m->graph->n_initializer; i++) {   /* at least the file's own data */
        LsValue v = {.kind = LS_V_PARAM};
        const Onnx__TensorProto *t = r->m->graph->initializer[i];
        LsCtx quiet = {.arena = r->cx->arena, .max_error = 1, .nerror = 1};  /* already reported */
        if (ls_onnx_type_is_float(t->data_type) &&
            ls_tensor_shape(&quiet, LS_NOWHERE, t, &v.shape, &v.type))
            add_tensor(&r->trained, &v);
    }
}

/* Planning needs no initial values, so the import did not report missing data files. */
static void find_data(LsInspectReport *r)
{
    LsDataFolder from = {.dir = r->m->dir, .home = r->m->home};
    LsCtx quiet = {.arena = r->cx->arena, .max_error = 1, .nerror = 1,      /* already reported */
                   .packed = r->cx->packed};
    for (size_t i = 0; i < r->m->graph->n_initializer; i++)
        ls_tensor_check(&quiet, LS_NOWHERE, &from, r->m->graph->initializer[i]);
    r->missing = from.nmissing > 0;
    if (r->missing)
        ls_inspect_tell(r->to_problems, "%s does not exist; the data of %u tensor%s in it ('%s'%s)",
                        from.file, from.nmissing, from.nmissing > 1 ? "s lies" : " lies",
                        from.tensor, from.nmissing > 1 ? ", ..." : "");
}

/* Everything but the printing. */
static void collect(LsInspectReport *r, const LsImportOptions *o)
{
    size_t n[2];
    r->to_problems = ls_text_open(&r->problems, &n[0]);
    r->to_hazards = ls_text_open(&r->hazards, &n[1]);
    count_ops(r);
    try_import(r, o);
    find_data(r);
    ls_text_close(r->to_problems, &r->problems);
    ls_text_close(r->to_hazards, &r->hazards);
}

bool ls_inspect(LsCtx *cx, const char *path, const LsImportOptions *o, FILE *to, bool json,
                bool all, bool *trainable)
{
    bool good = true;
    if (cx->model == NULL)
        cx->model = path;
    LsInspectReport r = {.cx = cx, .all = all, .open = {.arena = cx->arena}};
    if ((r.m = ls_onnx_open(cx, path, o)) == NULL)
        return false;
    /* The import reports problems with names again, together with all others. */
    LsCtx quiet = {.arena = cx->arena, .model = cx->model, .log = fopen("/dev/null", "w")};
    if (quiet.log == NULL)
        return ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot open /dev/null");
    ls_onnx_resolve(&quiet, r.m);
    fclose(quiet.log);
    collect(&r, o);
    *trainable = ls_inspect_trainable(&r);
    if (json)
        good = ls_inspect_print_json(&r, to);
    else
        ls_inspect_print_text(&r, to);
    free(r.problems);
    free(r.hazards);
    return good;
}
