/* compiler/inspect/onnx_inspect.c -- collects the report as plain data, then prints it as text or JSON. */
#include "compiler/inspect/onnx_inspect.h"

#include "base/heap.h"
#include "base/plain_text.h"
#include "compiler/inspect/onnx_inspect_roles.h"
#include "compiler/onnx/onnx_import.h"
#include "compiler/onnx/onnx_open.h"
#include "compiler/onnx/onnx_order.h"
#include "compiler/onnx/onnx_tensor.h"
#include "compiler/passes/passes.h"
#include "compiler/patterns/patterns.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct Count { const char *name; uint32_t n; const char *first; } Count;
typedef struct Counts { LsNames names; Count *item; } Counts;   /* by name id, from 1 */
typedef struct Tensors { uint32_t n; int64_t elements; } Tensors;

typedef struct Report {
    LsCtx *cx;
    LsOnnxModel *m;
    Counts ops, unsupported, gradless;
    LsNames open;               /* dimensions and inputs that need an option */
    const LsShapeBinding *bound; int nbound;    /* shapes of inputs from options; none without
                                                 * options */
    Tensors trained, other;     /* parameters; running statistics and frozen tensors */
    uint32_t ntaught;           /* parameters that some output depends on */
    bool imported;
    bool all;                   /* list all tensors, however many */
    const LsDecisions *decisions;       /* NULL: the import failed */
    bool missing;               /* tensors whose data file does not exist */
    FILE *to_problems, *to_hazards;     /* errors and warnings, by lines ... */
    char *problems, *hazards;   /* ... whose text is here after the streams are closed; for free() */
} Report;

/* A line about things of the file. */
__attribute__((format(printf, 2, 3))) static void tell(FILE *to, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ls_plain_vprintf(to, fmt, ap);
    va_end(ap);
    fputc('\n', to);
}

static void count(Report *r, Counts *c, const char *name, const char *first, uint32_t room)
{
    if (c->item == NULL) {
        c->names = (LsNames){.arena = r->cx->arena};
        c->item = ls_arena_alloc(r->cx->arena, room + 2, sizeof *c->item);
    }
    Count *item = &c->item[ls_names_add(&c->names, name)];
    if (item->n++ == 0)
        *item = (Count){name, 1, first};
}

static void count_ops(Report *r)
{
    for (uint32_t i = 0; i < r->m->nnode; i++) {
        const LsOnnxFlat *f = &r->m->node[i];
        const char *name = ls_flat_op_name(r->cx->arena, f);
        count(r, &r->ops, name, f->name, r->m->nnode);
        if (!ls_flat_supported(f))
            count(r, &r->unsupported, name, f->name, r->m->nnode);
    }
}

/* ---- import with every dimension bound ---- */

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

static const Onnx__TensorShapeProto *shape_of(const Onnx__ValueInfoProto *p)
{
    bool tensor = p->type != NULL && p->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
        && p->type->tensor_type != NULL;
    return tensor ? p->type->tensor_type->shape : NULL;
}

static bool is_open(const Onnx__TensorShapeProto__Dimension *d)
{
    return d->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ||
           d->dim_value <= 0;
}

static const char *symbol_of(const Onnx__TensorShapeProto__Dimension *d)
{
    bool named = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    return named ? ls_text(d->dim_param) : "";
}

/* Gives every input of known rank a full shape; open dimensions are 1, unless the options say
 * more. */
static void bind_open(Report *r, LsImportOptions *o)
{
    const Onnx__GraphProto *g = r->m->graph;
    LsShapeBinding *list =
        ls_arena_alloc(r->cx->arena, g->n_input + (size_t)o->nshape + 1, sizeof *list);
    int n = o->nshape;
    if (n > 0)
        memcpy(list, o->shape, (size_t)n * sizeof *list);
    for (size_t i = 0; i < g->n_input; i++) {
        const char *name = ls_text(g->input[i]->name);
        const Onnx__TensorShapeProto *s = shape_of(g->input[i]);
        if (r->m->maker[ls_names_find(&r->m->names, name)] != LS_MADE_INPUT || shaped(o, name))
            continue;
        if (s == NULL || s->n_dim > LS_MAX_RANK) {
            ls_names_add(&r->open, ls_arena_printf(r->cx->arena, "--shape %s=AxBx...", name));
            continue;
        }
        LsShape shape = {.rank = (int)s->n_dim};
        for (int k = 0; k < shape.rank; k++) {
            const char *symbol = symbol_of(s->dim[k]);
            shape.dim[k] = is_open(s->dim[k]) ? 1 : s->dim[k]->dim_value;
            if (!is_open(s->dim[k]) || (k == 0 && o->batch > 0 && !bound(o, symbol))) {
                shape.dim[k] = is_open(s->dim[k]) ? o->batch : shape.dim[k];
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

static void add_tensor(Tensors *t, const LsValue *v)
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
        for (uint32_t k = 0; k < g->node[i].nin; k++)
            for (uint32_t j = 0; j < g->node[i].nout; j++)
                moves[g->node[i].out + j] |= moves[g->operand[g->node[i].in + k].i]
                    && g->value[g->node[i].out + j].type == LS_REAL;
    return moves;
}

/* Finds operators without a gradient between a parameter and an output, and parameters that no
 * output depends on, whichever output the loss uses. */
static void find_gradless(Report *r, const LsGraph *g)
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
            tell(r->to_hazards, "parameter '%s' has no influence on any output and is not trained",
                 g->value[i].name);
    if (r->ntaught == 0)
        fprintf(r->to_problems, "no trained parameter has influence on an output\n"
                                "  hint: see --train and --freeze\n");
}

/* Collects the warnings that compile would print when it adds its default loss. Errors do not matter: the file may
 * contain its own loss. */
static void try_loss(Report *r, LsGraph *g)
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
static void sort_log(Report *r, char *log)
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

static void try_import(Report *r, const LsImportOptions *given)
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
    r->decisions = g != NULL ? g->decisions : NULL;
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
static void find_data(Report *r)
{
    LsDataFolder from = {.dir = r->m->dir, .home = r->m->home};
    LsCtx quiet = {.arena = r->cx->arena, .max_error = 1, .nerror = 1};     /* already reported */
    for (size_t i = 0; i < r->m->graph->n_initializer; i++)
        ls_tensor_check(&quiet, LS_NOWHERE, &from, r->m->graph->initializer[i]);
    r->missing = from.nmissing > 0;
    if (r->missing)
        tell(r->to_problems, "%s does not exist; the data of %u tensor%s in it ('%s'%s)", from.file, from.nmissing,
             from.nmissing > 1 ? "s lies" : " lies", from.tensor, from.nmissing > 1 ? ", ..." : "");
}

static bool is_trainable(const Report *r)
{
    return r->imported && !r->missing && r->gradless.names.n == 0 && r->ntaught > 0;
}

/* ---- printing ---- */

static const char *type_text(const Onnx__ValueInfoProto *p)
{
    bool tensor = p->type != NULL && p->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
        && p->type->tensor_type != NULL;
    return tensor ? ls_onnx_type_name(p->type->tensor_type->elem_type) : "not a tensor";
}

static const char *value_text(LsArena *a, const Onnx__ValueInfoProto *p)
{
    const Onnx__TensorShapeProto *s = shape_of(p);
    const char *text = type_text(p);
    for (size_t k = 0; s != NULL && k < s->n_dim && k < 2 * LS_MAX_RANK; k++) {
        const char *dim = is_open(s->dim[k]) ? symbol_of(s->dim[k])
                                             : ls_arena_printf(a, "%" PRId64, s->dim[k]->dim_value);
        text = ls_arena_printf(a, "%s%s%s", text, k > 0 ? "x" : " ", dim[0] != '\0' ? dim : "?");
    }
    return text;
}

static bool is_input(const Report *r, const Onnx__ValueInfoProto *p)
{
    return r->m->maker[ls_names_find(&r->m->names, ls_text(p->name))] == LS_MADE_INPUT;
}

static void print_counts(FILE *to, const char *what, const Counts *c, bool with_first)
{
    fprintf(to, "%s", what);
    for (uint32_t i = 1; i <= c->names.n; i++)
        if (with_first)
            tell(to, "    %s: %u node%s, the first is '%s'", c->item[i].name, c->item[i].n,
                 c->item[i].n > 1 ? "s" : "", c->item[i].first);
        else
            ls_plain_printf(to, "%s%s %u", i > 1 ? ", " : "", c->item[i].name, c->item[i].n);
    fprintf(to, "%s", with_first ? "" : "\n");
}

static void print_lines(FILE *to, const char *what, char *lines)
{
    char *rest;
    if (lines[0] != '\0')
        fprintf(to, "%s", what);
    for (char *s = strtok_r(lines, "\n", &rest); s != NULL; s = strtok_r(NULL, "\n", &rest))
        fprintf(to, "    %s\n", s);
}

static void print_values(const Report *r, FILE *to)
{
    const Onnx__GraphProto *g = r->m->graph;
    LsArena *a = r->cx->arena;
    for (size_t i = 0; i < g->n_input; i++)
        if (is_input(r, g->input[i]))
            tell(to, "  input       %s: %s", ls_text(g->input[i]->name), value_text(a, g->input[i]));
    for (size_t i = 0; i < g->n_output; i++)
        tell(to, "  output      %s: %s", ls_text(g->output[i]->name), value_text(a, g->output[i]));
    for (uint32_t i = 1; i <= r->open.n; i++)
        tell(to, "  to bind     %s", r->open.name[i]);
    for (int i = 0; i < r->nbound; i++)
        tell(to, "  bound       %s: %s", r->bound[i].input, ls_shape_text(a, &r->bound[i].shape));
}

static void print_text(Report *r, FILE *to)
{
    tell(to, "%s", r->cx->model);
    tell(to, "  format      IR %" PRId64 ", opset %d, written by %s %s", r->m->proto->ir_version, r->m->opset,
         ls_text(r->m->proto->producer_name), ls_text(r->m->proto->producer_version));
    print_values(r, to);
    print_counts(to, "  operators   ", &r->ops, false);
    fprintf(to, "  parameters  %u tensors, %" PRId64 " elements, %" PRId64 " bytes as float\n",
            r->trained.n, r->trained.elements, 4 * r->trained.elements);
    if (r->other.n > 0)
        fprintf(to, "  statistics  %u tensors, %" PRId64 " elements, %" PRId64 " bytes as float\n",
                r->other.n, r->other.elements, 4 * r->other.elements);
    if (r->decisions != NULL)
        ls_inspect_roles_text(to, r->cx->arena, r->decisions, r->all);
    if (r->unsupported.names.n > 0)
        print_counts(to, "  not supported:\n", &r->unsupported, true);
    if (r->gradless.names.n > 0)
        print_counts(to, "  no gradient:\n", &r->gradless, true);
    print_lines(to, "  hazards:\n", r->hazards);
    print_lines(to, "  problems:\n", r->problems);
    if (is_trainable(r))
        fprintf(to, "  nothing prevents training it\n");
}

static cJSON *json_values(const Report *r, Onnx__ValueInfoProto *const *list, size_t n, bool inputs)
{
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < n; i++) {
        if (inputs && !is_input(r, list[i]))
            continue;
        const Onnx__TensorShapeProto *s = shape_of(list[i]);
        cJSON *v = cJSON_CreateObject(), *dims = cJSON_CreateArray();
        cJSON_AddStringToObject(v, "name", ls_text(list[i]->name));
        cJSON_AddStringToObject(v, "type", type_text(list[i]));
        for (size_t k = 0; s != NULL && k < s->n_dim; k++)
            cJSON_AddItemToArray(dims, !is_open(s->dim[k])
                                 ? cJSON_CreateNumber((double)s->dim[k]->dim_value)
                                 : cJSON_CreateString(symbol_of(s->dim[k])));
        cJSON_AddItemToObject(v, "dims", s != NULL ? dims : cJSON_CreateNull());
        if (s == NULL)
            cJSON_Delete(dims);
        cJSON_AddItemToArray(array, v);
    }
    return array;
}

static cJSON *json_counts(const Counts *c)
{
    cJSON *o = cJSON_CreateObject();
    for (uint32_t i = 1; i <= c->names.n; i++)
        cJSON_AddNumberToObject(o, c->item[i].name, c->item[i].n);
    return o;
}

static cJSON *json_lines(char *lines)
{
    cJSON *array = cJSON_CreateArray();
    char *rest;
    for (char *s = strtok_r(lines, "\n", &rest); s != NULL; s = strtok_r(NULL, "\n", &rest))
        cJSON_AddItemToArray(array, cJSON_CreateString(s));
    return array;
}

static cJSON *json_tensors(const Tensors *t)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "tensors", t->n);
    cJSON_AddNumberToObject(o, "elements", (double)t->elements);
    cJSON_AddNumberToObject(o, "bytes", 4.0 * (double)t->elements);
    return o;
}

static bool print_json(Report *r, FILE *to)
{
    const Onnx__GraphProto *g = r->m->graph;
    cJSON *o = cJSON_CreateObject(), *open = cJSON_CreateArray();
    for (uint32_t i = 1; i <= r->open.n; i++)
        cJSON_AddItemToArray(open, cJSON_CreateString(r->open.name[i]));
    cJSON_AddNumberToObject(o, "schema", 1);
    cJSON_AddStringToObject(o, "model", r->cx->model);
    cJSON_AddNumberToObject(o, "ir_version", (double)r->m->proto->ir_version);
    cJSON_AddNumberToObject(o, "opset", r->m->opset);
    cJSON_AddStringToObject(o, "producer", ls_text(r->m->proto->producer_name));
    cJSON_AddItemToObject(o, "inputs", json_values(r, g->input, g->n_input, true));
    cJSON_AddItemToObject(o, "outputs", json_values(r, g->output, g->n_output, false));
    cJSON_AddItemToObject(o, "to_bind", open);
    cJSON_AddItemToObject(o, "operators", json_counts(&r->ops));
    cJSON_AddItemToObject(o, "parameters", json_tensors(&r->trained));
    cJSON_AddItemToObject(o, "statistics", json_tensors(&r->other));
    if (r->decisions != NULL)
        ls_inspect_roles_json(o, r->decisions);
    cJSON_AddItemToObject(o, "not_supported", json_counts(&r->unsupported));
    cJSON_AddItemToObject(o, "no_gradient", json_counts(&r->gradless));
    cJSON_AddItemToObject(o, "hazards", json_lines(r->hazards));
    cJSON_AddItemToObject(o, "problems", json_lines(r->problems));
    cJSON_AddBoolToObject(o, "trainable", is_trainable(r));
    char *text = cJSON_Print(o);
    cJSON_Delete(o);
    if (text == NULL)
        return false;
    ls_plain_json(to, text);
    fputc('\n', to);
    free(text);
    return true;
}

/* Everything but the printing. */
static void collect(Report *r, const LsImportOptions *o)
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
    Report r = {.cx = cx, .all = all, .open = {.arena = cx->arena}};
    if ((r.m = ls_onnx_open(cx, path, o->tie_identity)) == NULL)
        return false;
    /* The import reports problems with names again, together with all others. */
    LsCtx quiet = {.arena = cx->arena, .model = cx->model, .log = fopen("/dev/null", "w")};
    if (quiet.log == NULL)
        return ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot open /dev/null");
    ls_onnx_resolve(&quiet, r.m);
    fclose(quiet.log);
    collect(&r, o);
    *trainable = is_trainable(&r);
    if (json)
        good = print_json(&r, to);
    else
        print_text(&r, to);
    free(r.problems);
    free(r.hazards);
    return good;
}
