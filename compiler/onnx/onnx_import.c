/* compiler/onnx/onnx_import.c -- appends IR nodes in one pass over a file's nodes, in run order. */
#include "compiler/onnx/onnx_import.h"
#include "compiler/packed/packed_tensor.h"

#include "compiler/fold/append.h"
#include "compiler/onnx/import_state.h"
#include "compiler/onnx/onnx_check.h"
#include "compiler/onnx/onnx_control.h"
#include "compiler/onnx_file/onnx_domain.h"
#include "compiler/onnx/onnx_element.h"
#include "compiler/onnx/onnx_export_advice.h"
#include "compiler/onnx/onnx_found_weights.h"
#include "compiler/onnx/onnx_inputs.h"
#include "compiler/onnx/onnx_open.h"
#include "compiler/onnx/onnx_order.h"
#include "compiler/onnx/onnx_outputs.h"
#include "compiler/onnx/onnx_report.h"
#include "compiler/onnx/onnx_roles.h"
#include "compiler/onnx/onnx_row.h"
#include "compiler/onnx/onnx_sequence.h"
#include "compiler/onnx/onnx_stops.h"

#include <inttypes.h>
#include <string.h>

static const int64_t MAX_SETTING = 4096;    /* most elements of a parameter that may be a setting */
static const int64_t MAX_STAND_IN = INT64_C(1) << 28;   /* most elements of a constant replaced by
                                                         * zeros */

static LsOnnxValue *value_of(LsImport *im, const char *name)
{
    return &im->value[ls_names_find(&im->m->names, name)];
}

/* ---- initializers ---- */

static bool add_initializer(LsImport *im, const Onnx__TensorProto *t)
{
    LsCtx *cx = im->cx;
    const char *name = ls_text(t->name);
    LsOnnxValue *to = value_of(im, name);
    LsShape shape;
    LsType type;
    if (ls_is(to->v) || to->poison)
        return false;           /* a duplicate, already reported */
    to->poison = true;
    if (!ls_tensor_shape(cx, LS_NOWHERE, t, &shape, &type))
        return false;
    const LsVerdict *said = &im->verdict[ls_names_find(&im->m->names, name)];
    LsValueKind kind = ls_role_kind(said->role);
    bool state = kind == LS_V_PARAM || kind == LS_V_STATE;
    int before = cx->nerror;
    uint32_t missing = im->data.nmissing;
    bool planned = state && (im->o->weightless || im->o->located) && ls_count(&shape) > MAX_SETTING;
    const void *data = planned ? NULL : ls_tensor_data(cx, LS_NOWHERE, &im->data, t);
    if (planned)
        ls_tensor_check(cx, LS_NOWHERE, &im->data, t);
    if (cx->nerror > before || (data == NULL && !planned && !im->o->weightless))
        return false;
    if (type == LS_REAL && t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT &&
        im->nconverted++ == 0)
        im->converted = t;
    if (state && im->o->weightless)
        im->data.nmissing = missing;    /* a plan needs no initial values */
    else if (!state && data == NULL && ls_count(&shape) > MAX_STAND_IN)
        return ls_error(cx, LS_NOWHERE, LS_E_DATA, NULL, "the data of '%s' is missing", name);
    else if (!state && data == NULL)
        data = ls_arena_alloc(cx->arena, (size_t)ls_count(&shape), (size_t)ls_type_bytes(type, 4));
    *to = (LsOnnxValue){
        .v = ls_value_add(cx, im->g, kind, name, type, &shape, data),
        .element = t->data_type, .stored = true};
    LsPackedTensor *packed = ls_packed_named(cx->packed, name);
    if (packed != NULL && said->role == LS_ROLE_FROZEN)
        im->g->value[to->v.i].packed = packed;
    else if (packed != NULL && packed->asked)
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION,
                        "freeze it (--freeze), or train adapters beside it (--lora)",
                        "--quantize-frozen: '%s' is trained, and codes of few bits cannot be",
                        name);
    return true;
}

static bool add_initializers(LsImport *im)
{
    const Onnx__GraphProto *p = im->m->graph;
    bool good = true;
    for (size_t i = 0; i < p->n_initializer; i++) {
        const char *name = ls_text(p->initializer[i]->name);
        if (im->reads[ls_names_find(&im->m->names, name)] > 0)
            good &= add_initializer(im, p->initializer[i]);
        else
            im->unread_name = im->nunread++ == 0 ? name : im->unread_name;
    }
    const char *more = im->data.nmissing > 1 ? ", ..." : "";
    if (im->data.nmissing > 0 && im->o->weightless && im->o->training)
        ls_warn(im->cx, LS_NOWHERE, NULL,
                "%s does not exist; the data of %u constant%s ('%s'%s) is taken as zeros",
                im->data.file, im->data.nmissing, im->data.nmissing > 1 ? "s" : "", im->data.tensor,
                more);
    else if (im->data.nmissing > 0 && !im->o->weightless)
        good = ls_error(im->cx, LS_NOWHERE, LS_E_DATA,
                        "keep the data file beside the model; planning alone does not need it",
                        "%s does not exist; the data of %u tensor%s in it ('%s'%s)",
                        im->data.file, im->data.nmissing,
                        im->data.nmissing > 1 ? "s lies" : " lies", im->data.tensor, more);
    if (p->n_sparse_initializer > 0)
        good = ls_error(im->cx, LS_NOWHERE, LS_E_UNSUPPORTED, NULL,
                        "sparse initializers are not supported");
    return good;
}

static void count_reads(LsImport *im)
{
    for (uint32_t i = 0; i < im->m->nnode; i++) {
        const Onnx__NodeProto *p = im->m->node[i].proto;
        for (size_t k = 0; k < p->n_input; k++)
            im->reads[ls_names_find(&im->m->names, ls_text(p->input[k]))]++;
    }
    for (size_t i = 0; i < im->m->graph->n_output; i++) {
        uint32_t id = ls_names_find(&im->m->names, ls_text(im->m->graph->output[i]->name));
        im->reads[id]++;
        im->is_output[id] = true;
    }
}

/* ---- operators without a row ---- */

static const char *why_unsupported(LsArena *a, const LsOnnxFlat *f)
{
    const LsOnnxOp *row = ls_onnx_find(ls_text(f->proto->op_type));
    const char *op = ls_text(f->proto->op_type);
    if (strcmp(op, "Unique") == 0 || strcmp(op, "NonMaxSuppression") == 0)
        return "the size of its result depends on the data, while all shapes are fixed at compile "
               "time; "
               "leave it out of the training graph";
    if (strstr(op, "uantize") != NULL || strncmp(op, "QLinear", 7) == 0
        || strstr(op, "Integer") != NULL)
        return "the file holds a quantised model, for inference; train the model of floats that it "
               "was made from";
    if (strcmp(ls_onnx_domain(f->proto->domain), "ai.onnx.ml") == 0)
        return "operators of ai.onnx.ml turn scores into labels, and training does not need them: "
               "remove them and their "
               "outputs from the file";
    if (ls_onnx_domain(f->proto->domain)[0] != '\0')
        return "operators outside ai.onnx are read when the model defines them as local functions; "
               "`lowerset ops` "
               "lists the others";
    if (row != NULL && f->version < row->since)
        return ls_arena_printf(a, "it is read from opset %d on, the model uses %d", row->since,
                               f->version);
    return "`lowerset ops` lists what is supported";
}

/* Reports one error for each operator, with the number of its nodes. */
static bool report_unsupported(LsImport *im)
{
    LsOnnxModel *m = im->m;
    LsNames seen = {.arena = im->cx->arena};
    uint32_t *count = ls_arena_alloc(im->cx->arena, m->nnode + 1, sizeof *count);
    uint32_t *first = ls_arena_alloc(im->cx->arena, m->nnode + 1, sizeof *first);
    for (uint32_t i = 0; i < m->nnode; i++) {
        if (ls_flat_supported(&m->node[i]))
            continue;
        uint32_t id = ls_names_add(&seen, ls_flat_op_name(im->cx->arena, &m->node[i]));
        if (count[id]++ == 0)
            first[id] = i;
    }
    for (uint32_t id = 1; id <= seen.n; id++) {
        const LsOnnxFlat *f = &m->node[first[id]];
        ls_error(im->cx, LS_NOWHERE, LS_E_UNSUPPORTED, why_unsupported(im->cx->arena, f),
                 "operator %s is not supported (%u node%s, the first is node %u '%s')",
                 seen.name[id], count[id], count[id] > 1 ? "s" : "", f->index, f->name);
    }
    return seen.n == 0;
}

/* ---- nodes ---- */

static void poison_results(LsImport *im, const LsOnnxFlat *f)
{
    for (size_t k = 0; k < f->proto->n_output; k++)
        value_of(im, ls_text(f->proto->output[k]))->poison = true;
}

static bool takes_lists(const LsOnnxFlat *f)
{
    return ls_onnx_sequence_op(f) || ls_onnx_control_op(f) || ls_flat_is(f, "Identity");
}

/* False: an operand is missing because of an earlier error, or an error is reported here. */
static bool gather(LsImport *im, const LsOnnxFlat *f, LsValueId in[], int *nin)
{
    const Onnx__NodeProto *p = f->proto;
    bool good = true;
    *nin = 0;
    for (size_t k = 0; k < p->n_input; k++) {
        const char *name = ls_text(p->input[k]);
        if (name[0] == '\0')
            continue;
        const LsOnnxValue *v = value_of(im, name);
        in[k] = v->v;
        *nin = (int)k + 1;
        int64_t maker = im->m->maker[ls_names_find(&im->m->names, name)];
        if ((v->list != NULL || v->empty) && !takes_lists(f)) {
            ls_error(im->cx, ls_flat_where(f), LS_E_TYPE,
                     v->empty ? NULL : "take its items by SequenceAt", "operand %zu is the %s '%s'",
                     k, v->empty ? "empty optional value" : "sequence", name);
            good = false;
        }
        if (v->list != NULL || v->empty)
            continue;
        if (!ls_is(v->v) && !v->poison && maker >= 0)
            ls_error(im->cx, ls_flat_where(f), LS_E_UNSUPPORTED, NULL,
                     "operand %zu reads '%s', a result of (%s) that is not computed",
                     k, name, ls_text(im->m->node[maker].proto->op_type));
        good &= ls_is(v->v);
    }
    return good;
}

/* Checks the size of all results together; infer functions check each result alone. */
static bool check_results(LsImport *im, const LsOnnxFlat *f, uint32_t from)
{
    for (uint32_t i = from; i < im->g->nvalue; i++) {
        const LsValue *v = &im->g->value[i];
        for (int k = 0; k < v->shape.rank; k++)
            if (v->shape.dim[k] < 1 && v->kind != LS_V_CONST)
                return ls_error(im->cx, ls_flat_where(f), LS_E_SHAPE, NULL, "a result has an empty "
                                "dimension: %s", ls_shape_text(im->cx->arena, &v->shape));
        bool told = im->elements > LS_MOST_IN_ALL;
        im->elements += ls_count(&v->shape);
        if (im->elements > LS_MOST_IN_ALL)
            return !told && ls_error(im->cx, ls_flat_where(f), LS_E_SHAPE, NULL,
                            "a result is %s, and the results up to here have %" PRId64
                            " elements: more than any machine holds",
                            ls_shape_text(im->cx->arena, &v->shape), im->elements);
    }
    return true;
}

/* Gives result k its name in the file. A graph output that is an alias of another value becomes a
 * view, so that it has its own name. */
static void bind_result(LsImport *im, const LsOnnxFlat *f, LsValueId v, const char *name,
                        bool fresh, int element)
{
    LsGraph *g = im->g;
    uint32_t id = ls_names_find(&im->m->names, name);
    if (!fresh && im->is_output[id]) {
        v = ls_append1(im->cx, g, LS_OP_RESHAPE, v, &(LsAttr){.shape = {*ls_shape(g, v)}});
        fresh = true;
    }
    if (fresh && (g->value[v.i].kind == LS_V_TEMP || g->value[v.i].kind == LS_V_CONST))
        g->value[v.i].name = name;
    bool untied = fresh && ls_is_state(g, v);   /* only identity() makes state */
    bool constant = fresh && ls_onnx_makes_weight(im->m, f);
    bool weight = constant && ls_shape(g, v)->rank > 0 && !im->has_weights;
    if (constant && ls_type(g, v) == LS_REAL && ls_onnx_told_to_train(im->o, name))
        g->value[v.i].kind = LS_V_PARAM;
    im->value[id] =
        (LsOnnxValue){.v = v, .element = element, .weight = weight, .stored = constant || untied};
}

/* An Identity of an initializer becomes a parameter of its own, unless tying is requested. */
static LsValueId identity(LsImport *im, const LsOnnxFlat *f, LsValueId v)
{
    const LsValue *x = &im->g->value[v.i];
    if (!ls_is_state(im->g, v) || im->o->tie_identity || f->inner
        || ls_onnx_stops(im->cx->arena, im->o, f) != LS_STOPS_NOT)
        return v;
    const char *name = ls_text(f->proto->output[0]);
    if (im->nuntied++ == 0) {
        im->untied_name = name;
        im->untied_from = x->name;
    }
    LsShape shape = x->shape;
    return ls_value_add(im->cx, im->g, x->kind, name, x->type, &shape, x->data);
}

/* Cuts the results to the width of their types, and sets those types. */
static bool cut_results(const LsOnnxNode *n, LsValueId out[], int element[])
{
    for (int k = 0; k < n->nout; k++) {
        if (!ls_is(out[k]))
            continue;
        element[k] = ls_onnx_result_element(n, out[k]);
        out[k] = ls_onnx_cut(n, out[k], element[k]);
        if (!ls_is(out[k]))
            return false;
    }
    return true;
}

/* An array of n items for one node, in the arena where it is long: graphs may have many nodes.
 * Operators look at some operands without counting them. */
enum { FEW = 16 };
#define ROOM(im, few, n)                                                                           \
    ((n) + 8 <= FEW ? (few) : ls_arena_alloc((im)->cx->arena, (n) + 8, sizeof *(few)))

/* Operands and results of a node, with their element types in the file (TensorProto.DataType, 0:
 * unknown). */
typedef struct Built {
    const LsValueId *in;
    const int *in_element;
    int nin;
    LsValueId *out;
    int *element;
} Built;

static bool run_row(LsImport *im, const LsOnnxFlat *f, const Built *b)
{
    const Onnx__NodeProto *p = f->proto;
    const char *few[FEW] = {NULL}, **out_name = ROOM(im, few, p->n_output);
    int nout = 0, before = im->cx->nerror;
    for (size_t k = 0; k < p->n_output; k++) {
        out_name[k] = ls_text(p->output[k]);
        nout = out_name[k][0] != '\0' ? (int)k + 1 : nout;
    }
    if (ls_flat_is(f, "Identity") && (b->nin != 1 || nout != 1))
        return ls_error(im->cx, ls_flat_where(f), LS_E_NAME, NULL,
                        "Identity has one operand and one result");
    if (ls_flat_is(f, "Identity")) {
        b->element[0] = b->in_element[0];
        return ls_is(b->out[0] = identity(im, f, b->in[0]));
    }
    LsOnnxNode n = {.cx = im->cx,
                    .g = im->g,
                    .op = ls_text(p->op_type),
                    .domain = ls_onnx_domain(p->domain),
                    .name = f->name,
                    .version = f->version,
                    .nin = b->nin,
                    .nout = nout,
                    .in = b->in,
                    .element = b->in_element,
                    .out_name = out_name,
                    .proto = p,
                    .import = im};
    ls_onnx_weights(&n);
    bool good = ls_onnx_sequence_op(f) ? ls_onnx_sequence(im, &n, b->out)
                                       : ls_flat_row(f)->build(&n, b->out);
    good = good && cut_results(&n, b->out, b->element);
    if (!good && im->cx->nerror == before)
        ls_error(im->cx, ls_flat_where(f), LS_E_VERIFY, NULL,
                 "the operator failed without a reason");
    return im->cx->nerror == before;
}

/* The node's results; those that are no tensors go straight to im->value. */
static bool run(LsImport *im, const LsOnnxFlat *f, const Built *b)
{
    const Onnx__NodeProto *p = f->proto;
    bool same = ls_flat_is(f, "Identity") && b->nin == 1 && !ls_is(b->in[0]) && p->n_output == 1;
    if (!same && !ls_onnx_control_op(f))
        return run_row(im, f, b);
    LsOnnxValue *to = ls_arena_alloc(im->cx->arena, p->n_output + 1, sizeof *to);
    if (same)
        to[0] = *value_of(im, ls_text(p->input[0]));
    else if (!ls_onnx_control(im, f, to))
        return false;
    for (size_t k = 0; k < p->n_output; k++) {
        b->out[k] = to[k].v;
        b->element[k] = to[k].element;
        if (!ls_is(to[k].v))
            *value_of(im, ls_text(p->output[k])) = to[k];
    }
    return true;
}

void ls_onnx_build(LsImport *im, const LsOnnxFlat *f)
{
    const Onnx__NodeProto *p = f->proto;
    uint32_t from = im->g->nvalue;
    LsValueId few_in[FEW] = {0}, few_out[FEW] = {0};
    int few_in_element[FEW] = {0}, few_element[FEW] = {0};
    LsValueId *in = ROOM(im, few_in, p->n_input), *out = ROOM(im, few_out, p->n_output);
    int *in_element = ROOM(im, few_in_element, p->n_input),
        *element = ROOM(im, few_element, p->n_output);
    Built b = {in, in_element, 0, out, element};
    for (size_t k = 0; k < p->n_input; k++)
        in_element[k] = value_of(im, ls_text(p->input[k]))->element;
    ls_graph_origin(im->g, (LsOrigin){LS_FORWARD, {0}, f->index, f->name});
    if (!ls_flat_supported(f) || !gather(im, f, in, &b.nin) || !run(im, f, &b)
        || (!ls_onnx_control_op(f) && !check_results(im, f, from))) {
        poison_results(im, f);
        return;
    }
    if (!ls_onnx_stop(im, f, out)) {
        poison_results(im, f);
        return;
    }
    uint32_t end = im->g->nvalue;
    for (size_t k = 0; k < p->n_output; k++) {
        const char *name = ls_text(p->output[k]);
        bool fresh = out[k].i >= from && out[k].i < end;
        for (size_t j = 0; j < k && fresh; j++)
            fresh &= out[j].i != out[k].i;
        if (name[0] != '\0' && ls_is(out[k]))
            bind_result(im, f, out[k], name, fresh, element[k]);
    }
}

/* ---- the whole ---- */

static bool import(LsImport *im, LsReport *r)
{
    LsOnnxModel *m = im->m;
    m->report = r;
    bool good = ls_onnx_resolve(im->cx, m);
    good &= ls_onnx_check(im->cx, m, im->o->adapters);
    uint32_t n = im->nname = m->names.n + 1;
    im->data = (LsDataFolder){.dir = m->dir, .home = m->home};
    im->value = ls_arena_alloc(im->cx->arena, n, sizeof *im->value);
    im->is_output = ls_arena_alloc(im->cx->arena, n, sizeof *im->is_output);
    im->reads = ls_arena_alloc(im->cx->arena, n, sizeof *im->reads);
    count_reads(im);
    ls_onnx_decide(im);
    good &= add_initializers(im);
    good &= ls_onnx_bind_inputs(im);
    ls_report_cut(r, LS_REPORT_FIRST);
    /* Behind the last error that is printed, nodes would only take memory. */
    for (uint32_t i = 0;
         i < m->norder && (im->cx->max_error <= 0 || im->cx->nerror <= im->cx->max_error); i++) {
        const LsOnnxFlat f = m->node[m->order[i]];      /* bodies append nodes */
        ls_onnx_build(im, &f);
        ls_report_cut(r, f.index);
    }
    good &= ls_onnx_add_outputs(im);
    ls_report_cut(r, LS_REPORT_FIRST);
    good &= report_unsupported(im);
    good = good && ls_onnx_check_states(im);  /* which follows names that are not unique
                                               * otherwise */
    ls_onnx_drop_weight_inputs(im->g);
    ls_onnx_record(im);
    if (good && im->o->training) {  /* the import of the training form has printed them */
        ls_onnx_hints(im);
        ls_onnx_check_bn(im);
    }
    return good;
}

/* m: NULL after diagnostics. */
static LsGraph *import_model(LsCtx *cx, LsReport *r, LsOnnxModel *m, const LsImportOptions *o)
{
    LsImport im = {.cx = cx, .o = o, .g = ls_graph_new(cx), .m = m,
                   .decisions = ls_arena_alloc(cx->arena, 1, sizeof *im.decisions)};
    im.g->source.weightless = o->weightless;
    im.g->training = o->training;
    im.g->source.bn = o->bn;
    im.g->source.bn_var_torch = o->bn_var_torch;
    im.g->source.decisions = im.decisions;
    im.g->source.dropout = o->dropout;
    bool good = im.m != NULL && import(&im, r);
    ls_graph_origin(im.g, (LsOrigin){LS_FORWARD, {0}, 0, NULL});
    return good ? im.g : NULL;
}

static LsGraph *import_any(LsCtx *cx, const char *path, LsOnnxModel *m, const LsImportOptions *o)
{
    LsReport r;
    int before = cx->nerror;
    ls_report_begin(&r, cx);
    LsGraph *g = import_model(cx, &r, m != NULL ? m : ls_onnx_open(cx, path, o), o);
    ls_report_end(&r);
    return cx->nerror == before ? g : NULL;
}

LsGraph *ls_onnx_import_model(LsCtx *cx, LsOnnxModel *m, const LsImportOptions *o)
{
    cx->packed = m->packed;
    return import_any(cx, NULL, m, o);
}

LsGraph *ls_onnx_import(LsCtx *cx, const char *path, const LsImportOptions *o)
{
    if (cx->model == NULL)
        cx->model = path;
    return import_any(cx, path, NULL, o);
}
