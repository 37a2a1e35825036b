/* compiler/onnx/onnx_roles.c -- decides the role of every initializer of reals.
 *
 * In order of precedence: the options; the exporter's notes (torch.export: parameter, buffer,
 * constant, folded from these); the readers (a layer's weight, a running statistic, a bound, a
 * comparison); whether a person or an exporter chose the name; and the values, which reveal a mask.
 * Constants made by nodes of the file are weights only in files without a weight among their
 * initializers: old exporters and ONNX's light models write weights so. */
#include "compiler/onnx/onnx_roles.h"

#include "compiler/adapters/adapters.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "compiler/ir/graph.h"
#include "compiler/onnx/import_state.h"
#include "compiler/onnx_file/onnx_domain.h"
#include "compiler/onnx_file/onnx_metadata.h"
#include "compiler/onnx_file/onnx_reals.h"
#include "compiler/onnx/onnx_stops.h"
#include "compiler/onnx_file/onnx_subgraph.h"

enum {                          /* the use of an operand by the operator that reads it */
    WEIGHT = 1, STATISTIC = 2, SETTING = 4, EXPONENT = 8, NO_GRADIENT = 16, OTHER = 32,
    BOUND = 64,                 /* a setting that is trained only on request */
    ANGLES = 256,               /* cosines or sines of positions: likewise, and no parameter */
    DECIDES = 128               /* the number of a loop's iterations or an If's branch is computed
                                 * from it */
};
enum { ALL = 0xffff };          /* operands, as bits */

typedef struct Use { const char *op; unsigned operands; int use; } Use;

static const Use table[] = {
    {"BatchNormalization", 0x06, WEIGHT}, {"BatchNormalization", 0x18, STATISTIC},
    {"CausalConvWithState", 0x06, WEIGHT},
    {"Conv", 0x06, WEIGHT},               {"ConvTranspose", 0x06, WEIGHT},
    {"DeformConv", 0x0a, WEIGHT},         {"Einsum", ALL, WEIGHT},
    {"GRU", 0x0e, WEIGHT},                {"Gather", 0x01, WEIGHT},
    {"Gemm", 0x07, WEIGHT},               {"GroupNormalization", 0x06, WEIGHT},
    {"InstanceNormalization", 0x06, WEIGHT}, {"LSTM", 0x8e, WEIGHT},
    {"LayerNormalization", 0x06, WEIGHT}, {"MatMul", 0x03, WEIGHT},
    {"PRelu", 0x02, WEIGHT},              {"RMSNormalization", 0x02, WEIGHT},
    {"RNN", 0x0e, WEIGHT},                {"SimplifiedLayerNormalization", 0x02, WEIGHT},
    {LS_MICROSOFT "Attention", 0x06, WEIGHT},    {LS_MICROSOFT "BiasGelu", 0x02, WEIGHT},
    {LS_MICROSOFT "EmbedLayerNormalization", 0x7c, WEIGHT}, {LS_MICROSOFT "FastGelu", 0x02, WEIGHT},
    {LS_MICROSOFT "FusedConv", 0x06, WEIGHT},    {LS_MICROSOFT "FusedGemm", 0x07, WEIGHT},
    {LS_MICROSOFT "FusedMatMul", 0x03, WEIGHT},  {LS_MICROSOFT "MultiHeadAttention", 0x08, WEIGHT},
    {LS_MICROSOFT "GroupQueryAttention", 0x180, ANGLES},
    {LS_MICROSOFT "GroupQueryAttention", 0xc000, WEIGHT},
    {LS_MICROSOFT "SkipLayerNormalization", 0x1c, WEIGHT},
    {LS_MICROSOFT "SkipSimplifiedLayerNormalization", 0x0c, WEIGHT},
    {LS_MICROSOFT "RotaryEmbedding", 0x0c, ANGLES},
    {"Clip", 0x06, BOUND},                {"RotaryEmbedding", 0x06, ANGLES},
    {"Pow", 0x02, EXPONENT},
    {"ConstantOfShape", 0x01, SETTING},   {"Dropout", 0x06, SETTING},
    {"NonMaxSuppression", 0x1c, SETTING}, {"OneHot", 0x06, SETTING},
    {"Pad", 0x0e, SETTING},               {"QuantizeLinear", 0x06, SETTING},
    {"DequantizeLinear", 0x06, SETTING},  {"Range", 0x07, SETTING},
    {"Resize", 0x0e, SETTING},            {"Upsample", 0x02, SETTING},
    {"ArgMax", 0x01, NO_GRADIENT},        {"ArgMin", 0x01, NO_GRADIENT},
    {"CastLike", 0x02, NO_GRADIENT},      {"Ceil", 0x01, NO_GRADIENT},
    {"Equal", 0x03, NO_GRADIENT},         {"Floor", 0x01, NO_GRADIENT},
    {"Greater", 0x03, NO_GRADIENT},       {"GreaterOrEqual", 0x03, NO_GRADIENT},
    {"Identity", 0x01, 0},                /* the readers of its result decide */
    {"IsInf", 0x01, NO_GRADIENT},         {"IsNaN", 0x01, NO_GRADIENT},
    {"Less", 0x03, NO_GRADIENT},          {"LessOrEqual", 0x03, NO_GRADIENT},
    {"Round", 0x01, NO_GRADIENT},         {"Shape", 0x01, NO_GRADIENT},
    {"Sign", 0x01, NO_GRADIENT},          {"Size", 0x01, NO_GRADIENT},
};

static int use_of(const char *op, size_t k)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (k < 16 && strcmp(table[i].op, op) == 0 && (table[i].operands >> k & 1))
            return table[i].use;
    return OTHER;
}

/* ---- options ---- */

static bool matches(const char *const *glob, int n, const char *name)
{
    for (int k = 0; k < n; k++)
        if (fnmatch(glob[k], name, 0) == 0)
            return true;
    return false;
}

/* Nothing is trained but what the options name. */
static bool trains_only(const LsImportOptions *o) { return o->nonly > 0 || o->adapters != NULL; }

static const char *why_trained(const LsImportOptions *o)
{
    return o->adapters != NULL ? "of an adapter" : o->nonly > 0 ? "--train-only" : "--train";
}

bool ls_onnx_told_to_train(const LsImportOptions *o, const char *name)
{
    return matches(o->train, o->ntrain, name) || matches(o->only, o->nonly, name)
           || (o->adapters != NULL && ls_adapters_train(o->adapters, name));
}

bool ls_onnx_told_to_freeze(const LsImportOptions *o, const char *name)
{
    return ls_onnx_told_to_stop(o, name)
           || (!ls_onnx_told_to_train(o, name)
               && (trains_only(o) || matches(o->freeze, o->nfreeze, name)));
}

/* ---- values that are masks ---- */

/* Zeros and ones, or zeros and numbers that suppress attention; not a single repeated value, which
 * may initialise a parameter. */
static bool is_mask(LsImport *im, const Onnx__TensorProto *t, int64_t count)
{
    LsCtx quiet = {.arena = im->cx->arena, .max_error = 1, .nerror = 1, .packed = im->cx->packed};
    LsDataFolder from = {.dir = im->m->dir, .home = im->m->home};
    LsReals r;
    bool differ = false, mask = ls_reals_open(&r, &quiet, LS_NOWHERE, &from, t);
    const float first = mask && count > 0 ? ls_reals_at(&r, 0) : 0;
    for (int64_t at = 0, n; at < count && mask; at += n) {
        const LsFileReal *v = ls_reals_from(&r, at, &n);
        for (int64_t i = 0; i < n; i++) {
            mask &= v[i] == 0 || v[i] == 1 || v[i] <= -1e4f;
            differ |= v[i] != first;
        }
    }
    return mask && differ;
}

/* ---- one tensor ---- */

typedef struct Tensor {
    LsImport *im;
    const Onnx__TensorProto *proto;
    const char *name;
    LsShape shape;
    int64_t count;
    int uses;
    bool decides;               /* which nodes of bodies run */
} Tensor;

static LsVerdict verdict(LsRole role, const char *why) { return (LsVerdict){role, why, false}; }

/* These tensors are listed once. */
static LsVerdict doubtful(LsRole role, const char *why) { return (LsVerdict){role, why, true}; }

static bool only(const Tensor *t, int uses) { return t->uses != 0 && (t->uses & ~uses) == 0; }

static LsVerdict without_gradient(const Tensor *t, bool parameter)
{
    const char *why = only(t, NO_GRADIENT) ? "its readers have no gradient"
                                           : "a setting of its reader (a bound, a border, a scale)";
    return parameter ? doubtful(LS_ROLE_CONSTANT, why) : verdict(LS_ROLE_CONSTANT, why);
}

static LsVerdict declared(const Tensor *t, const LsOnnxSource *s)
{
    if (s->kind == LS_FROM_PARAMETER && only(t, SETTING | NO_GRADIENT))
        return without_gradient(t, true);
    if (s->kind == LS_FROM_PARAMETER)
        return verdict(LS_ROLE_TRAINED, "a parameter, by the exporter's notes");
    const char *why = s->kind == LS_FROM_BUFFER ? "a buffer, by the exporter's notes"
                                                : "a constant, by the exporter's notes";
    return verdict(t->uses & WEIGHT ? LS_ROLE_FROZEN : LS_ROLE_CONSTANT, why);
}

static LsVerdict folded(const Tensor *t, const LsOnnxSource *s)
{
    LsArena *a = t->im->cx->arena;
    const char *first;
    uint32_t n = ls_source_parameters(a, t->im->m->sources, s->folded_from, &first);
    if (n == 0)
        return verdict(LS_ROLE_CONSTANT, "computed by the exporter, from no parameter");
    /* A copy that is only transposed or reshaped would be computed again from the parameter
     * (unfold_parameters.c). */
    uint32_t id = ls_names_find(&t->im->m->names, first);
    n += n == 1 && id != 0 && t->im->m->maker[id] == LS_MADE_INITIALIZER;
    LsImport *im = t->im;
    const char *from = ls_source_parameter_list(a, im->m->sources, s->folded_from);
    if (n > 1) {
        im->blended = ls_arena_grow(a, im->blended, im->nblended, im->nblended + 1,
                                    sizeof *im->blended, &im->cap_blended);
        im->blended[im->nblended++] = (LsUntied){t->name, from};
        return verdict(LS_ROLE_TRAINED,
                       ls_arena_printf(a,
                                       "computed by the exporter from parameters that it does not "
                                       "replace: %s",
                                       from));
    }
    im->folded = ls_arena_grow(a, im->folded, im->nfolded, im->nfolded + 1, sizeof *im->folded,
                               &im->cap_folded);
    im->folded[im->nfolded++] = (LsUntied){t->name, from};
    return verdict(LS_ROLE_TRAINED,
                   ls_arena_printf(a, "computed by the exporter from the parameter %s", from));
}

/* A tensor with a generated name. Single numbers are literals of the program; a tensor in the place
 * of a layer's weight, or with one axis, is a folded weight. */
static LsVerdict made_up(const Tensor *t)
{
    int axes = 0;
    for (int k = 0; k < t->shape.rank; k++)
        axes += t->shape.dim[k] > 1;
    if (t->count == 1)
        return verdict(LS_ROLE_CONSTANT, "a literal: one number under a made-up name");
    if (t->uses & WEIGHT)
        return verdict(LS_ROLE_TRAINED, "a layer's weight, under a made-up name");
    if (is_mask(t->im, t->proto, t->count))
        return verdict(LS_ROLE_CONSTANT, "a mask, by its values");
    if (axes > 1 && strstr(t->name, "/Gather_output_") != NULL)
        return doubtful(LS_ROLE_TRAINED, "rows of a table, as an optimizer looked them up");
    return axes == 1 ? doubtful(LS_ROLE_TRAINED, "a vector under a made-up name")
                     : doubtful(LS_ROLE_CONSTANT, "no layer's weight, under a made-up name");
}

/* TorchScript files do not distinguish parameters from buffers. */
static bool may_be_buffer(const Tensor *t)
{
    return !ls_source_weight_name(t->name) && !(t->uses & WEIGHT)
        && strcmp(ls_text(t->im->m->proto->producer_name), "pytorch") == 0;
}

static LsVerdict unsaid(const Tensor *t)
{
    bool made = ls_source_made_up(t->name);
    if (only(t, STATISTIC))
        return verdict(LS_ROLE_STATISTIC, "running mean or variance of a batch norm");
    if (strncmp(t->name, "onnx::", 6) == 0 && t->im->nmade_up++ == 0)
        t->im->made_up = t->name;
    if (only(t, ANGLES))
        return verdict(LS_ROLE_CONSTANT, "the angles of positions");
    if (only(t, SETTING | NO_GRADIENT | BOUND | ANGLES))
        return without_gradient(t, !made && (t->uses & BOUND) != 0);
    if (made)
        return made_up(t);
    if (t->uses & WEIGHT)
        return verdict(LS_ROLE_TRAINED, "a layer's weight");
    if (t->count > 1 && is_mask(t->im, t->proto, t->count))
        return verdict(LS_ROLE_CONSTANT, "a mask, by its values");
    if (only(t, EXPONENT))
        return verdict(LS_ROLE_TRAINED, "an exponent with a name of its own");
    return may_be_buffer(t)
               ? doubtful(LS_ROLE_TRAINED,
                          "has a name; the file does not say whether it is a parameter or a buffer")
               : verdict(LS_ROLE_TRAINED, "has a name, and its reader has a gradient");
}

static bool is_literal(const LsImport *im, const char *name)
{
    const LsOnnxEdits *e = im->m->edits;
    for (uint32_t k = 0; k < e->nliteral; k++)
        if (strcmp(e->literal[k].name, name) == 0)
            return true;
    return false;
}

static bool is_unpacked(const LsImport *im, const char *name)
{
    const LsOnnxEdits *e = im->m->edits;
    for (uint32_t k = 0; k < e->nunpacked; k++)
        if (strcmp(e->unpacked[k].name, name) == 0)
            return true;
    return false;
}

/* Globs match a folded tensor by its own name, or by the parameter that it was folded from. */
static bool told(const Tensor *t, const LsOnnxSource *s,
                 bool (*to)(const LsImportOptions *, const char *))
{
    const char *from = NULL;
    if (s->folded_from != NULL)
        ls_source_parameters(t->im->cx->arena, t->im->m->sources, s->folded_from, &from);
    return to(t->im->o, t->name) || (from != NULL && to(t->im->o, from));
}

static LsVerdict role_of(const Tensor *t)
{
    const LsImport *im = t->im;
    const LsOnnxSource *s = ls_onnx_source(im->m->sources, t->name);
    bool may_train = !only(t, SETTING | NO_GRADIENT | STATISTIC);
    if (is_unpacked(im, t->name)) {
        if (told(t, s, ls_onnx_told_to_train))
            ls_error(im->cx, LS_NOWHERE, LS_E_OPTION,
                     "give narrower patterns, or train adapters beside it (--lora)",
                     "'%s' is stored in 4 or 8 bits: it cannot be trained", t->name);
        return verdict(LS_ROLE_FROZEN, "stored in 4 or 8 bits");
    }
    if (told(t, s, ls_onnx_told_to_train) && !ls_onnx_told_to_stop(im->o, t->name))
        return may_train ? verdict(LS_ROLE_TRAINED, why_trained(im->o))
                         : without_gradient(t, true);
    if (t->count == 1 && t->decides)
        return verdict(LS_ROLE_CONSTANT, "decides which nodes of a body run, and how often");
    if (is_literal(im, t->name))
        return verdict(LS_ROLE_CONSTANT, "of a norm whose module has no parameters");
    LsVerdict v = only(t, STATISTIC)    ? unsaid(t)
        : s->kind != LS_FROM_UNKNOWN    ? declared(t, s)
        : s->folded_from != NULL        ? folded(t, s)
                                        : unsaid(t);
    if (v.role == LS_ROLE_TRAINED && told(t, s, ls_onnx_told_to_freeze))
        return verdict(LS_ROLE_FROZEN, ls_onnx_told_to_stop(im->o, t->name) ? "--stop-gradient"
                                       : im->o->adapters != NULL ? "beside adapters"
                                       : im->o->nonly > 0 ? "not named by --train-only"
                                                          : "--freeze");
    return v;
}

/* With how a program keeps the tensor, unless the file says so. */
static LsVerdict decide(const Tensor *t)
{
    LsVerdict v = role_of(t);
    const LsPackedTensor *packed = ls_packed_named(t->im->cx->packed, t->name);
    if (packed != NULL && packed->code == NULL && v.role == LS_ROLE_FROZEN)
        v.why = ls_arena_printf(t->im->cx->arena, "%s; kept as %s", v.why,
                                ls_codes_name(packed->codes.form));
    return v;
}

/* ---- all tensors ---- */

typedef struct Uses { const LsImport *im; int *uses; } Uses;

static void note_use(void *of, const Onnx__NodeProto *p, size_t k)
{
    const Uses *u = of;
    const char *domain = ls_onnx_domain(p->domain), *op = ls_text(p->op_type);
    if (domain[0] != '\0')
        op = ls_arena_printf(u->im->cx->arena, "%s.%s", domain, op);
    u->uses[ls_names_find(&u->im->m->names, ls_text(p->input[k]))] |= use_of(op, k);
}

/* Numbers of iterations and conditions must be known when the model is compiled, and so must what
 * they are computed from. */
static void mark_decisions(LsImport *im, int *uses)
{
    const LsOnnxModel *m = im->m;
    for (uint32_t i = m->norder; i-- > 0;) {
        const LsOnnxFlat *f = &m->node[m->order[i]];
        const Onnx__NodeProto *p = f->proto;
        size_t operands = ls_flat_is(f, "Loop") ? 2 : ls_flat_is(f, "If") ? 1 : 0;
        for (size_t k = 0; k < p->n_output; k++)
            if (uses[ls_names_find(&m->names, ls_text(p->output[k]))] & DECIDES)
                operands = p->n_input;
        if (ls_flat_is(f, "Shape")
            || ls_flat_is(f, "Size")) /* which are known whatever the values */
            operands = 0;
        for (size_t k = 0; k < operands && k < p->n_input; k++)
            if (ls_text(p->input[k])[0] != '\0')
                uses[ls_names_find(&m->names, p->input[k])] |= DECIDES;
    }
}

static void collect_uses(LsImport *im, int *uses)
{
    Uses all = {im, uses};
    for (uint32_t i = 0; i < im->m->nnode; i++) {
        const LsOnnxFlat *f = &im->m->node[i];
        for (size_t k = 0; k < f->proto->n_input - f->ncaptured; k++)
            note_use(&all, f->proto, k);
        ls_subgraph_reads(f->proto, note_use, &all);
    }
    /* The reader of an Identity's result counts as a reader of its operand. */
    for (uint32_t i = im->m->nnode; i-- > 0;) {
        const LsOnnxFlat *f = &im->m->node[i];
        if (ls_flat_is(f, "Identity") && f->proto->n_input == 1 && f->proto->n_output == 1)
            uses[ls_names_find(&im->m->names, ls_text(f->proto->input[0]))] |=
                uses[ls_names_find(&im->m->names, ls_text(f->proto->output[0]))];
    }
    mark_decisions(im, uses);
}

void ls_onnx_decide(LsImport *im)
{
    const Onnx__GraphProto *g = im->m->graph;
    int *uses = ls_arena_alloc(im->cx->arena, im->m->names.n + 1, sizeof *uses);
    im->verdict = ls_arena_alloc(im->cx->arena, im->m->names.n + 1, sizeof *im->verdict);
    collect_uses(im, uses);
    for (size_t i = 0; i < g->n_initializer; i++) {
        LsCtx quiet = {.arena = im->cx->arena, .max_error = 1, .nerror = 1,
                       .packed = im->cx->packed};
        Tensor t = {.im = im, .proto = g->initializer[i], .name = ls_text(g->initializer[i]->name)};
        uint32_t id = ls_names_find(&im->m->names, t.name);
        LsType type;
        t.uses = uses[id] & ~DECIDES;
        t.decides = (uses[id] & DECIDES) != 0;
        if (im->reads[id] == 0 || !ls_onnx_type_is_float(t.proto->data_type)
            || !ls_tensor_shape(&quiet, LS_NOWHERE, t.proto, &t.shape, &type)
            || (t.count = ls_count(&t.shape)) == 0)
            continue;
        im->verdict[id] = decide(&t);
        im->has_weights |= im->verdict[id].role == LS_ROLE_TRAINED && t.count > 1;
        if (im->verdict[id].doubtful && im->ndoubtful++ < 4)
            im->doubtful = ls_arena_printf(im->cx->arena, "%s%s'%s' (%s)", ls_text(im->doubtful),
                                           im->ndoubtful > 1 ? ", " : "", t.name,
                                           ls_role_name[im->verdict[id].role]);
    }
}

LsValueKind ls_role_kind(LsRole role)
{
    switch (role) {
    case LS_ROLE_TRAINED: return LS_V_PARAM;
    case LS_ROLE_FROZEN:
    case LS_ROLE_STATISTIC: return LS_V_STATE;
    default: return LS_V_CONST;
    }
}

/* ---- batch norms ---- */

/* Arguments of torch's batch norms: x, weight, bias, mean, variance, training flag, ... */
bool ls_onnx_traced_training(const LsOnnxNode *n)
{
    const Onnx__NodeProto *p = n->proto;
    LsArena *a = n->cx->arena;
    const char *call = p != NULL ? ls_onnx_meta(a, &p->base, LS_META_CALL) : NULL;
    if (call == NULL && p != NULL)      /* the name also tells it, where notes were stripped */
        return strstr(ls_text(p->name), "native_batch_norm_legit_functional") != NULL;
    if (call == NULL || strstr(call, "batch_norm") == NULL || strstr(call, "no_training") != NULL)
        return false;
    const char *trains = ls_meta_argument(a, call, 5);
    return trains != NULL && strcmp(trains, "True") == 0;
}

void ls_onnx_note_batch_norm(const LsOnnxNode *n, LsBnBy by)
{
    LsDecisions *d = n->import != NULL ? n->import->decisions : NULL;
    if (d == NULL)
        return;
    d->bn = ls_arena_grow(n->cx->arena, d->bn, d->nbn, d->nbn + 1, sizeof *d->bn, &d->cap_bn);
    d->bn[d->nbn++] = (LsBnDecision){n->name, by};
}

/* ---- record of the decisions ---- */

static LsDecision settled(const LsImport *im, const LsValue *v, uint32_t id)
{
    static const LsRole role[] = {[LS_V_PARAM] = LS_ROLE_TRAINED, [LS_V_STATE] = LS_ROLE_FROZEN,
                                  [LS_V_CONST] = LS_ROLE_CONSTANT};
    LsVerdict said = im->verdict[id];
    LsDecision d = {v->name, said.role, said.why, v->shape, im->reads[id]};
    if (said.role == LS_ROLE_NONE || ls_role_kind(said.role) != v->kind) {
        d.role = role[v->kind];
        d.why = v->kind == LS_V_CONST   ? "a setting of its reader"
                : v->kind == LS_V_STATE ? "--freeze, or a running statistic"
                                        : "made by a node, in the place of a layer's weight";
    }
    return d;
}

/* Freezes parameters that nodes of the file make; initializers are frozen when they are read. */
static void freeze_made(LsImport *im)
{
    for (uint32_t i = 1; i < im->g->nvalue; i++) {
        LsValue *v = &im->g->value[i];
        if (v->kind == LS_V_PARAM && ls_onnx_told_to_freeze(im->o, v->name))
            v->kind = LS_V_STATE;
    }
}

/* The glob names that tensor, or what it was folded from. */
static bool names(const LsImport *im, const char *glob, const LsDecision *d)
{
    const LsOnnxSource *s = ls_onnx_source(im->m->sources, d->name);
    const char *list = s->folded_from, *name;
    bool hit = fnmatch(glob, d->name, 0) == 0;
    while (!hit && list != NULL && (name = ls_meta_item(im->cx->arena, &list)) != NULL)
        hit = fnmatch(glob, name, 0) == 0;
    return hit;
}

/* trained: a match is one that is trained. */
static void check_globs(LsImport *im, const char *option, const char *const *glob, int n,
                        bool trained)
{
    const LsDecisions *d = im->decisions;
    for (int k = 0; k < n && im->o->training; k++) {
        bool hit = false;
        for (uint32_t i = 0; i < d->ntensor && !hit; i++)
            hit = (!trained || d->tensor[i].role == LS_ROLE_TRAINED)
                  && names(im, glob[k], &d->tensor[i]);
        if (!hit)
            ls_error(im->cx, LS_NOWHERE, LS_E_OPTION, "`lowerset inspect -v` lists the tensors",
                     "%s %s matches no parameter%s", option, glob[k],
                     trained ? " that can be trained" : "");
    }
}

/* A tensor that --train-only and --freeze name is a contradiction; --train, which wins over
 * --freeze, says the same for some. */
static void check_only(LsImport *im)
{
    const LsDecisions *d = im->decisions;
    const LsImportOptions *o = im->o;
    for (uint32_t i = 0; i < d->ntensor && o->training; i++)
        for (int k = 0; k < o->nonly; k++)
            for (int j = 0; j < o->nfreeze; j++)
                if (names(im, o->only[k], &d->tensor[i])
                    && names(im, o->freeze[j], &d->tensor[i])) {
                    ls_error(im->cx, LS_NOWHERE, LS_E_OPTION,
                             "leave one of them out, or give narrower patterns",
                             "'%s' is named by --train-only %s and by --freeze %s",
                             d->tensor[i].name, o->only[k], o->freeze[j]);
                    return;
                }
}

/* Initializers in file order, then tensors made by nodes of the file. */
void ls_onnx_record(LsImport *im)
{
    const LsGraph *g = im->g;
    LsDecisions *to = im->decisions;
    freeze_made(im);
    uint32_t room = 0;
    for (uint32_t i = 1; i < g->nvalue; i++) {
        const LsValue *v = &g->value[i];
        uint32_t id = ls_names_find(&im->m->names, v->name);
        bool own = id != 0 && im->value[id].v.i == i && v->type == LS_REAL;
        bool constant = v->kind == LS_V_CONST && im->verdict[id].role != LS_ROLE_NONE;
        if (!own || (!ls_is_state(g, (LsValueId){i}) && !constant))
            continue;
        to->tensor = ls_arena_regrow(im->cx->arena, to->tensor, to->ntensor, to->ntensor + 1,
                                     sizeof *to->tensor, &room);
        to->tensor[to->ntensor++] = settled(im, v, id);
    }
    check_globs(im, "--freeze", im->o->freeze, im->o->nfreeze, false);
    check_globs(im, "--train", im->o->train, im->o->ntrain, false);
    check_globs(im, "--train-only", im->o->only, im->o->nonly, true);
    check_only(im);
    if (im->o->training)
        ls_onnx_check_stops(im);
}
