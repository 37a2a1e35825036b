/* compiler/onnx/onnx_inputs.c -- graph inputs: types, and a size for every dimension.
 *
 * A dimension is a number, a symbol, or unknown. --shape sets all dimensions of an input, --batch
 * the first dimension of each, --dim a symbol everywhere. A dimension left without a size is
 * reported, with the option that sets it. */
#include "compiler/onnx/onnx_inputs.h"

#include "compiler/ir/graph.h"
#include "compiler/onnx/onnx_caches.h"
#include "compiler/onnx_file/onnx_tensor.h"

#include <inttypes.h>
#include <string.h>

enum { UNKNOWN = 0 };           /* size of a dimension that the file leaves open */

typedef struct Input {
    const char *name;
    int type;                   /* ONNX type */
    bool ranked;
    LsShape shape;              /* UNKNOWN where the file has no number */
    const Onnx__TensorShapeProto *dims; /* in the file, of that rank; NULL: not ranked there */
    size_t at;                  /* in the file's list */
    bool empty;                 /* a cache without past tokens: a constant without elements */
    bool off;                   /* the switch of parts with caches, which have no tokens */
} Input;

/* The name of dimension k; "": it has none. */
static const char *symbol(const Input *in, int k)
{
    const Onnx__TensorShapeProto__Dimension *d = in->dims != NULL ? in->dims->dim[k] : NULL;
    const bool named =
        d != NULL && d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    return named ? ls_text(d->dim_param) : "";
}

typedef struct Bind {
    LsImport *im;
    Input *input; uint32_t ninput;
    LsNames symbol;             /* bound symbols and their sizes, by id */
    int64_t *size; uint32_t cap;
    int64_t batch;              /* of the graph before it is cut into parts; 0: no option and no
                                 * file says it */
    bool cut;                   /* that batch has several parts, and the graph is one of them */
} Bind;

static bool read_dims(LsCtx *cx, Input *in, const Onnx__TensorShapeProto *s)
{
    if (s->n_dim > LS_MAX_RANK)
        return ls_error(cx, LS_NOWHERE, LS_E_SHAPE, NULL, "input '%s' has rank %zu; at most %d is "
                        "supported", in->name, s->n_dim, LS_MAX_RANK);
    in->ranked = true;
    in->dims = s;
    in->shape.rank = (int)s->n_dim;
    for (int k = 0; k < in->shape.rank; k++) {
        const Onnx__TensorShapeProto__Dimension *d = s->dim[k];
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            in->shape.dim[k] = d->dim_value == -1 ? UNKNOWN : d->dim_value;
        if (in->shape.dim[k] < 0)
            return ls_error(cx, LS_NOWHERE, LS_E_SHAPE, NULL, "input '%s' has dimension %" PRId64
                            " on axis %d", in->name, in->shape.dim[k], k);
    }
    return true;
}

static bool read_input(LsCtx *cx, Input *in, const Onnx__ValueInfoProto *p)
{
    LsType type;
    in->name = ls_text(p->name);
    if (p->type == NULL || p->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
        || p->type->tensor_type == NULL)
        return ls_error(cx, LS_NOWHERE, LS_E_TYPE, NULL,
                        "input '%s' is not a tensor (sequences, maps and optional values are not "
                        "supported)",
                        in->name);
    in->type = p->type->tensor_type->elem_type;
    if (!in->empty && !ls_onnx_type(in->type, &type))
        return ls_error(cx, LS_NOWHERE, LS_E_TYPE,
                        "programs train on numbers: cut the part behind this input out of the file "
                        "(onnx.utils.extract_model)",
                        "input '%s' has element type %s (%d), which is not supported", in->name,
                        ls_onnx_type_name(in->type), in->type);
    return p->type->tensor_type->shape == NULL || read_dims(cx, in, p->type->tensor_type->shape);
}

static bool bind_symbol(Bind *b, const char *name, int64_t size, const char *flag)
{
    LsCtx *cx = b->im->cx;
    uint32_t id = ls_names_find(&b->symbol, name);
    if (id != 0 && b->size[id] != size)
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, NULL, "%s makes dimension '%s' %" PRId64
                        ", another option makes it %" PRId64, flag, name, size, b->size[id]);
    id = ls_names_add(&b->symbol, name);
    uint32_t used = b->size != NULL ? id : 0;
    b->size = ls_arena_grow(cx->arena, b->size, used, id + 1, sizeof *b->size, &b->cap);
    b->size[id] = size;
    return true;
}

static bool apply_dims(Bind *b)
{
    bool good = true;
    const LsImportOptions *o = b->im->o;
    for (int i = 0; i < o->ndim; i++)
        if (o->dim[i].size < 1)
            good = ls_error(b->im->cx, LS_NOWHERE, LS_E_OPTION, NULL,
                            "--dim %s=%" PRId64 ": a size is "
                            "at least 1",
                            o->dim[i].name, o->dim[i].size);
        else
            good &= bind_symbol(b, o->dim[i].name, o->dim[i].size, "--dim");
    return good;
}

static bool apply_shape(Bind *b, Input *in, const LsShape *s)
{
    LsCtx *cx = b->im->cx;
    bool good = true, fits = !in->ranked || in->shape.rank == s->rank;
    for (int k = 0; fits && in->ranked && k < s->rank; k++)
        fits = in->shape.dim[k] == UNKNOWN || in->shape.dim[k] == s->dim[k];
    if (!fits)
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, NULL,
                        "--shape %s=%s does not fit the file, which has %s (0: open)",
                        in->name, ls_shape_text(cx->arena, s),
                        ls_shape_text(cx->arena, &in->shape));
    for (int k = 0; k < s->rank; k++) {
        if (s->dim[k] < 1)
            return ls_error(cx, LS_NOWHERE, LS_E_OPTION, NULL, "--shape %s: a size is at least 1",
                            in->name);
        if (symbol(in, k)[0] != '\0')
            good &= bind_symbol(b, symbol(in, k), s->dim[k], "--shape");
    }
    in->shape = *s;
    in->ranked = true;
    return good;
}

static bool apply_shapes(Bind *b)
{
    bool good = true;
    const LsImportOptions *o = b->im->o;
    LsNames names = {.arena = b->im->cx->arena};    /* input k has id k + 1: names are unique */
    for (uint32_t k = 0; o->nshape > 0 && k < b->ninput; k++)
        ls_names_add(&names, b->input[k].name);
    for (int i = 0; i < o->nshape; i++) {
        uint32_t id = ls_names_find(&names, o->shape[i].input);
        if (id != 0)
            good &= apply_shape(b, &b->input[id - 1], &o->shape[i].shape);
        else
            good = ls_error(b->im->cx, LS_NOWHERE, LS_E_OPTION, NULL,
                            "--shape names '%s', which is not an input of the model",
                            o->shape[i].input);
    }
    return good;
}

/* The first dimension of the first input, if it is known by now. */
static int64_t first_dim(const Bind *b)
{
    const bool has = b->ninput > 0 && b->input[0].ranked && b->input[0].shape.rank > 0;
    return has ? b->input[0].shape.dim[0] : UNKNOWN;
}

/* Decides what is cut into parts. A file that fixes the batch has fixed that of a part, so that
 * numbers inside its graph stay right, unless --batch asks for this very number in all. fixed: by
 * the file; UNKNOWN: the batch is open. */
static bool choose_batch(Bind *b, int64_t fixed)
{
    LsCtx *cx = b->im->cx;
    const LsImportOptions *o = b->im->o;
    const int64_t parts = o->parts > 1 ? o->parts : 1;
    const bool open = fixed == UNKNOWN;
    b->batch = open ? o->batch : fixed;
    b->cut = parts > 1 && (open || o->batch == fixed);
    if (open || o->batch == 0 || o->batch == fixed
        || (o->batch % parts == 0 && o->batch / parts == fixed))
        return true;
    if (parts == 1)
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "export with a dynamic first dimension",
                        "--batch %" PRId64
                        ": the file fixes the first dimension of '%s' at %" PRId64,
                        o->batch, b->input[0].name, fixed);
    const int64_t whole = fixed <= INT64_MAX / parts ? fixed * parts : INT64_MAX;
    return ls_error(cx, LS_NOWHERE, LS_E_OPTION,
                    ls_arena_printf(cx->arena,
                                    "give --batch %" PRId64 ", or none; or --batch %" PRId64
                                    ", to cut as many samples as the file has into parts",
                                    whole, fixed),
                    "--batch %" PRId64 ": the file fixes the first dimension of '%s' at %" PRId64
                    ", so that a batch of %" PRId64 " parts has %" PRId64 " samples",
                    o->batch, b->input[0].name, fixed, parts, whole);
}

static bool apply_batch(Bind *b)
{
    const int64_t batch = b->batch, first = first_dim(b);
    bool good = true;
    if (batch > 0 && first != UNKNOWN && first != batch)
        good = ls_error(b->im->cx, LS_NOWHERE, LS_E_OPTION, NULL,
                        "--batch %" PRId64 ": --shape makes the first dimension of '%s' %" PRId64,
                        batch, b->input[0].name, first);
    for (uint32_t i = 0; b->im->o->batch > 0 && i < b->ninput; i++) {
        Input *in = &b->input[i];
        if (!in->ranked || in->shape.rank == 0 || in->shape.dim[0] != UNKNOWN)
            continue;
        if (symbol(in, 0)[0] != '\0' && ls_names_find(&b->symbol, symbol(in, 0)) == 0)
            good &= bind_symbol(b, symbol(in, 0), batch, "--batch");
        else if (symbol(in, 0)[0] == '\0')
            in->shape.dim[0] = batch;
    }
    return good;
}

/* Binds the graph to one part of the batch: what says the length of the first input's first
 * dimension, its symbol or the number itself, says that of a part. */
static bool cut_batch(Bind *b)
{
    const int64_t parts = b->im->o->parts;
    if (!b->cut || b->ninput == 0 || !b->input[0].ranked || b->input[0].shape.rank == 0)
        return true;
    const uint32_t id =
        symbol(&b->input[0], 0)[0] != '\0' ? ls_names_find(&b->symbol, symbol(&b->input[0], 0)) : 0;
    const int64_t known = b->input[0].shape.dim[0],
                  batch = known == UNKNOWN && id != 0 ? b->size[id] : known;
    if (batch == UNKNOWN)
        return true;            /* settle reports it */
    if (batch % parts != 0)
        return ls_error(b->im->cx, LS_NOWHERE, LS_E_OPTION, NULL,
                        "--microbatches %" PRId64 ": a batch of %" PRId64
                        " samples does not divide into so many equal parts",
                        parts, batch);
    if (id != 0)
        b->size[id] = batch / parts;
    for (uint32_t i = 0; i < b->ninput; i++) {
        LsShape *s = &b->input[i].shape;
        if (b->input[i].ranked && s->rank > 0 && s->dim[0] == batch)
            s->dim[0] = batch / parts;
    }
    return true;
}

/* "Nx3x?x224" */
static const char *declared_text(LsArena *a, const Input *in)
{
    const char *text = "";
    for (int k = 0; k < in->shape.rank; k++) {
        const char *dim = symbol(in, k)[0] != '\0' ? symbol(in, k) : "?";
        if (in->shape.dim[k] != UNKNOWN)
            dim = ls_arena_printf(a, "%" PRId64, in->shape.dim[k]);
        text = ls_arena_printf(a, "%s%s%s", text, k > 0 ? "x" : "", dim);
    }
    return text;
}

/* The options that would bind the open dimensions. */
static const char *flags_text(LsArena *a, const Input *in)
{
    const char *text = "give";
    bool open = false;
    for (int k = 0; k < in->shape.rank; k++)
        if (in->shape.dim[k] == UNKNOWN && symbol(in, k)[0] != '\0')
            text = ls_arena_printf(a, "%s --dim %s=SIZE", text, symbol(in, k));
        else if (in->shape.dim[k] == UNKNOWN)
            open = true;
    if (open || !in->ranked)
        text = ls_arena_printf(a, "give --shape %s=AxBx...", in->name);
    return text;
}

/* ---- caches ---- */

/* The size of dimension k, by its number or its name. */
static int64_t size_of(const Bind *b, const Input *in, int k)
{
    const uint32_t id = symbol(in, k)[0] != '\0' ? ls_names_find(&b->symbol, symbol(in, k)) : 0;
    return in->shape.dim[k] == UNKNOWN && id != 0 ? b->size[id] : in->shape.dim[k];
}

/* Without past tokens there are as many tokens in all as new ones. */
static bool bind_totals(Bind *b)
{
    const Onnx__ValueInfoProto *p = ls_cache_tokens(b->im->m->graph);
    int64_t tokens = UNKNOWN;
    bool empty = false, good = true;
    for (uint32_t i = 0; i < b->ninput; i++) {
        const Input *in = &b->input[i];
        empty |= in->empty;
        if (p != NULL && strcmp(in->name, ls_text(p->name)) == 0 && in->shape.rank > 1)
            tokens = size_of(b, in, 1);
    }
    for (uint32_t i = 0; i < b->ninput && empty && tokens != UNKNOWN; i++)
        for (int k = 0; k < b->input[i].shape.rank; k++)
            if (ls_cache_is_total(symbol(&b->input[i], k))
                && size_of(b, &b->input[i], k) == UNKNOWN)
                good &= bind_symbol(b, symbol(&b->input[i], k), tokens, "the sequence");
    return good;
}

/* The constant in the place of a cache, or of the switch. Dimensions that nothing gives are 0, too,
 * so that what is computed from them is refused. */
static void add_constant(Bind *b, Input *in)
{
    LsImport *im = b->im;
    LsDecisions *d = im->decisions;
    for (int k = 0; k < in->shape.rank; k++)
        in->shape.dim[k] = size_of(b, in, k);
    const Onnx__ValueInfoProto *p = im->m->graph->input[in->at];
    if (in->empty) {
        const int axis = ls_cache_axis(p);
        in->shape.dim[axis] = 0;
        d->past = d->nempty++ == 0 ? symbol(in, axis) : d->past;
    }
    const int64_t n = in->empty ? 1 : ls_count(&in->shape);
    const LsValueId v =
        ls_value_add(im->cx, im->g, LS_V_CONST, in->name, in->empty ? LS_REAL : LS_BOOL, &in->shape,
                     ls_arena_alloc(im->g->arena, (size_t)n, sizeof(float)));
    im->value[ls_names_find(&im->m->names, in->name)] = (LsOnnxValue){.v = v, .element = in->type};
}

static bool settle(Bind *b, Input *in)
{
    LsCtx *cx = b->im->cx;
    int64_t count = 1;
    bool open = !in->ranked;
    for (int k = 0; k < in->shape.rank; k++) {
        uint32_t id = symbol(in, k)[0] != '\0' ? ls_names_find(&b->symbol, symbol(in, k)) : 0;
        if (in->shape.dim[k] == UNKNOWN && id != 0)
            in->shape.dim[k] = b->size[id];
        open |= in->shape.dim[k] == UNKNOWN;
    }
    if (open)
        return ls_error(cx, LS_NOWHERE, LS_E_DIM, flags_text(cx->arena, in),
                        "input '%s' (%s) has %s", in->name,
                        in->ranked ? declared_text(cx->arena, in) : "any rank",
                        in->ranked ? "dimensions without a size" : "no shape in the file");
    for (int k = 0; k < in->shape.rank; k++)
        if (__builtin_mul_overflow(count, in->shape.dim[k], &count) || count > LS_MOST_ELEMENTS)
            return ls_error(cx, LS_NOWHERE, LS_E_SHAPE, NULL,
                            "input '%s' has too many elements: %s", in->name,
                            ls_shape_text(cx->arena, &in->shape));
    return true;
}

/* The symbols of all inputs. */
static LsNames symbols(const Bind *b)
{
    LsNames known = {.arena = b->im->cx->arena};
    for (uint32_t j = 0; j < b->ninput; j++)
        for (int k = 0; k < b->input[j].shape.rank; k++)
            if (symbol(&b->input[j], k)[0] != '\0')
                ls_names_add(&known, symbol(&b->input[j], k));
    return known;
}

static const char *some_names(LsArena *a, const LsNames *known)
{
    enum { MOST = 20 };
    const char *text = known->n > 0 ? "are:" : "is none";
    for (uint32_t i = 1; i <= known->n && i <= MOST; i++)
        text = ls_arena_printf(a, "%s %s", text, known->name[i]);
    return known->n > MOST ? ls_arena_printf(a, "%s and %u more", text, known->n - MOST) : text;
}

static bool check_dim_flags(Bind *b)
{
    bool good = true;
    LsCtx *cx = b->im->cx;
    if (b->im->o->ndim == 0)
        return true;
    const LsNames known = symbols(b);
    for (int i = 0; i < b->im->o->ndim; i++)
        if (ls_names_find(&known, b->im->o->dim[i].name) == 0)
            good = ls_error(cx, LS_NOWHERE, LS_E_OPTION, NULL,
                            "--dim %s: no input has a dimension of that name; there %s",
                            b->im->o->dim[i].name, some_names(cx->arena, &known));
    return good;
}

bool ls_onnx_bind_inputs(LsImport *im)
{
    LsCtx *cx = im->cx;
    LsGraph *g = im->g;
    const Onnx__GraphProto *p = im->m->graph;
    Bind b = {.im = im, .symbol = {.arena = cx->arena},
              .input = ls_arena_alloc(cx->arena, p->n_input, sizeof(Input))};
    bool good = true;
    const bool caches = ls_cache_any(im->o, p);
    for (size_t i = 0; i < p->n_input; i++) {
        uint32_t id = ls_names_find(&im->m->names, ls_text(p->input[i]->name));
        if (im->m->maker[id] != LS_MADE_INPUT || im->value[id].poison)
            continue;
        im->value[id].poison = true;    /* until the input is added */
        b.input[b.ninput].at = i;
        b.input[b.ninput].empty = ls_cache_is_empty(im->o, p->input[i]);
        b.input[b.ninput].off = caches && ls_cache_is_switch(p->input[i]);
        bool read = read_input(cx, &b.input[b.ninput], p->input[i]);
        b.ninput += read;
        good &= read;
    }
    good &= choose_batch(&b, first_dim(&b));
    good &= apply_dims(&b);
    good &= apply_shapes(&b);
    good &= apply_batch(&b);
    good &= check_dim_flags(&b);
    good &= cut_batch(&b);
    good &= bind_totals(&b);
    g->input = ls_arena_alloc(cx->arena, b.ninput + 1, sizeof *g->input);
    for (uint32_t i = 0; i < b.ninput; i++) {
        Input *in = &b.input[i];
        LsType type;
        if (in->empty) {
            add_constant(&b, in);
            continue;
        }
        if (!settle(&b, in)) {
            good = false;
            continue;
        }
        if (in->off) {
            add_constant(&b, in);
            continue;
        }
        ls_onnx_type(in->type, &type);
        LsValueId v = ls_value_add(cx, g, LS_V_INPUT, in->name, type, &in->shape, NULL);
        g->input[g->ninput++] = v;
        im->value[ls_names_find(&im->m->names, in->name)] =
            (LsOnnxValue){.v = v, .element = in->type};
    }
    g->batch =
        g->ninput > 0 && ls_shape(g, g->input[0])->rank > 0 ? ls_shape(g, g->input[0])->dim[0] : 1;
    return good;
}
