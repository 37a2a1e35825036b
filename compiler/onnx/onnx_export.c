/* compiler/onnx/onnx_export.c -- builds the evaluation form of a file and locates the weights in
 * its bytes. */
#include "compiler/onnx/onnx_export.h"

#include "compiler/adapters/adapt.h"
#include "compiler/onnx_file/onnx_domain.h"
#include "compiler/onnx_file/onnx_widen.h"
#include "compiler/onnx/onnx_infer_form.h"
#include "compiler/onnx_file/onnx_tensor.h"
#include "compiler/onnx/onnx_model.h"
#include "compiler/onnx/onnx_open.h"
#include "compiler/onnx/onnx_order.h"
#include "compiler/onnx/onnx_stops.h"
#include "compiler/onnx_file/onnx_subgraph.h"
#include "compiler/onnx_file/onnx_wire_field.h"
#include "compiler/packed/packed_tensor.h"

#include <string.h>

enum {
    FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
    FIELD_GRAPH = 7,
    FIELD_INITIALIZER = 5,
    FIELD_RAW_DATA = 9
};

typedef struct Export {
    LsCtx *cx;
    LsOnnxModel *m;
    LsDataFolder data;
    Onnx__TensorProto **list; size_t nlist;     /* initializers of the new file */
    Onnx__TensorProto **tensor; /* by name id: the initializer that an Identity may copy */
    bool *gone;                                 /* by node of the file: replaced by an
                                                 * initializer */
} Export;

static Onnx__TensorProto *add_float(Export *e, const char *name, const int64_t *dim, size_t rank,
                                    const void *data, size_t count)
{
    Onnx__TensorProto *t = ls_arena_alloc(e->cx->arena, 1, sizeof *t);
    onnx__tensor_proto__init(t);
    t->name = (char *)name;
    t->n_dims = rank;
    t->dims = ls_arena_alloc(e->cx->arena, rank + 1, sizeof *t->dims);
    memcpy(t->dims, dim, rank * sizeof *dim);
    t->has_data_type = t->has_raw_data = true;
    t->data_type = FLOAT;
    t->raw_data = (ProtobufCBinaryData){count * sizeof(float), (uint8_t *)data};
    return e->list[e->nlist++] = t;
}

/* The tensor is a hole in the file, of float32; its values are read when the codes are made. */
static bool take_packed(Export *e, Onnx__TensorProto *t, LsPackedTensor *p)
{
    if (p->code == NULL && !ls_tensor_stored(e->cx, LS_NOWHERE, &e->data, t, &p->values))
        return false;
    ls_tensor_hollow(t, (size_t)p->codes.count * sizeof(float));
    return true;
}

/* Data of other reals stay as they are until they are written: they may be most of a file. */
static bool take_real(Export *e, Onnx__TensorProto *t)
{
    return t->data_type != FLOAT && ls_tensor_is_raw(t)
               ? ls_tensor_check(e->cx, LS_NOWHERE, &e->data, t)
                     && ls_tensor_embed(e->cx, LS_NOWHERE, &e->data, t)
               : ls_tensor_to_float(e->cx, LS_NOWHERE, &e->data, t);
}

static bool take_initializers(Export *e)
{
    Onnx__GraphProto *g = e->m->proto->graph;
    bool good = true;
    for (size_t i = 0; i < g->n_initializer; i++) {
        Onnx__TensorProto *t = g->initializer[i];
        bool real = ls_onnx_type_is_float(t->data_type);
        LsPackedTensor *packed = ls_packed_named(e->cx->packed, ls_text(t->name));
        if (packed != NULL && packed->used) {
            good &= take_packed(e, t, packed);
            e->list[e->nlist++] = t;
            continue;
        }
        good &= real ? take_real(e, t)
                     : ls_tensor_embed(e->cx, LS_NOWHERE, &e->data, t);
        e->list[e->nlist++] = t;
        if (real)
            e->tensor[ls_names_find(&e->m->names, ls_text(t->name))] = t;
    }
    if (e->data.nmissing > 0)
        good = ls_error(e->cx, LS_NOWHERE, LS_E_DATA, "keep the data file beside the model",
                        "%s does not exist",
                        e->data.file);
    return good;
}

/* Turns a Constant of reals with at least one axis into an initializer. */
static void take_constant(Export *e, const LsOnnxFlat *f)
{
    const Onnx__AttributeProto *v = ls_onnx_attribute(f->proto, "value");
    const Onnx__AttributeProto *list = ls_onnx_attribute(f->proto, "value_floats");
    const char *name = ls_text(f->proto->output[0]);
    if (v != NULL && v->t != NULL && ls_onnx_type_is_float(v->t->data_type) && v->t->n_dims > 0) {
        if (!ls_tensor_to_float(e->cx, ls_flat_where(f), NULL, v->t) || v->t->raw_data.len == 0)
            return;
        add_float(e, name, v->t->dims, v->t->n_dims, v->t->raw_data.data,
                  v->t->raw_data.len / sizeof(float));
        e->gone[f->index] = true;
    } else if (list != NULL && list->n_floats > 0) {
        int64_t n = (int64_t)list->n_floats;
        add_float(e, name, &n, 1, list->floats, list->n_floats);
        e->gone[f->index] = true;
    }
}

typedef struct Ints { const int64_t *v; size_t n; } Ints;

static Ints tensor_ints(Export *e, const Onnx__TensorProto *t)
{
    bool list = t != NULL && t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 && t->n_dims == 1;
    const int64_t *v = list ? ls_tensor_data(e->cx, LS_NOWHERE, &e->data, t) : NULL;
    return (Ints){v, v != NULL ? (size_t)t->dims[0] : 0};
}

/* The integers of a shape operand, when a Constant or an initializer makes it. */
static Ints known_ints(Export *e, const char *name)
{
    int64_t maker = e->m->maker[ls_names_find(&e->m->names, name)];
    const Onnx__GraphProto *g = e->m->graph;
    if (maker >= 0) {
        const Onnx__NodeProto *p = e->m->node[maker].proto;
        const Onnx__AttributeProto *v = ls_onnx_attribute(p, "value"),
                                   *list = ls_onnx_attribute(p, "value_ints");
        return v != NULL || list == NULL ? tensor_ints(e, v != NULL ? v->t : NULL)
                                         : (Ints){list->ints, list->n_ints};
    }
    for (size_t i = 0; maker == LS_MADE_INITIALIZER && i < g->n_initializer; i++)
        if (strcmp(ls_text(g->initializer[i]->name), name) == 0)
            return tensor_ints(e, g->initializer[i]);
    return (Ints){NULL, 0};
}

/* Turns a ConstantOfShape of reals into an initializer: light models hold all their weights so. */
static void take_filled(Export *e, const LsOnnxFlat *f)
{
    Ints shape = known_ints(e, ls_text(f->proto->input[0]));
    const Onnx__AttributeProto *v = ls_onnx_attribute(f->proto, "value");
    const float *fill = NULL;
    if (v != NULL && (v->t == NULL || !ls_onnx_type_is_float(v->t->data_type) || v->t->n_dims > 1
                      || (fill = ls_tensor_data(e->cx, ls_flat_where(f), NULL, v->t)) == NULL))
        return;
    size_t count = shape.n > 0 && shape.n <= LS_MAX_RANK ? 1 : 0;
    for (size_t k = 0; count > 0 && k < shape.n; k++)
        if (shape.v[k] < 1 || __builtin_mul_overflow(count, (size_t)shape.v[k], &count)
            || count > INT32_MAX)
            return;
    if (count == 0 || (v != NULL && v->t->n_dims == 1 && v->t->dims[0] != 1))
        return;
    float *data = ls_arena_alloc(e->cx->arena, count, sizeof *data);
    for (size_t i = 0; fill != NULL && i < count; i++)
        data[i] = *fill;
    add_float(e, ls_text(f->proto->output[0]), shape.v, shape.n, data, count);
    e->gone[f->index] = true;
}

/* Turns an Identity into an initializer where the importer makes a parameter of its own: see
 * identity() there. */
static void take_identity(Export *e, const LsOnnxFlat *f)
{
    const Onnx__TensorProto *t =
        e->tensor[ls_names_find(&e->m->names, ls_text(f->proto->input[0]))];
    const char *name = ls_text(f->proto->output[0]);
    if (t == NULL || t->raw_data.len == 0)
        return;
    Onnx__TensorProto *copy = add_float(e, name, t->dims, t->n_dims, NULL, 0);
    copy->data_type = t->data_type;
    copy->raw_data = t->raw_data;
    e->tensor[ls_names_find(&e->m->names, name)] = copy;
    e->gone[f->index] = true;
}

/* Whether a node makes a weight of another real type: it becomes a float32 initializer, so the
 * model does throughout. */
static bool has_narrow_constant(const LsOnnxModel *m)
{
    for (uint32_t i = 0; i < m->norder; i++) {
        const LsOnnxFlat *f = &m->node[m->order[i]];
        const Onnx__AttributeProto *v = ls_onnx_attribute(f->proto, "value");
        if (v != NULL && v->t != NULL && v->t->n_dims > 0 && v->t->data_type != FLOAT
            && ls_onnx_type_is_float(v->t->data_type) && !f->inner && ls_onnx_makes_weight(m, f))
            return true;
    }
    return false;
}

static void take_nodes(Export *e, const LsImportOptions *o)
{
    for (uint32_t i = 0; i < e->m->norder; i++) {
        const LsOnnxFlat *f = &e->m->node[e->m->order[i]];
        const char *op = ls_text(f->proto->op_type);
        if (f->inner || f->proto->n_output != 1 || ls_onnx_domain(f->proto->domain)[0] != '\0')
            continue;
        if (ls_onnx_makes_weight(e->m, f) && strcmp(op, "Constant") == 0)
            take_constant(e, f);
        else if (ls_onnx_makes_weight(e->m, f))
            take_filled(e, f);
        else if (f->proto->n_input == 1 && strcmp(op, "Identity") == 0 && !o->tie_identity
                 && ls_onnx_stops(e->cx->arena, o, f) == LS_STOPS_NOT)
            take_identity(e, f);
    }
}

static void drop_nodes(Export *e, Onnx__GraphProto *g)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->n_node; i++)
        if (!e->gone[i])
            g->node[kept++] = g->node[i];
    g->n_node = kept;
}

/* Drops constants that have lost their readers: dropout modes, shapes of filled weights. */
static void drop_unread_constants(LsArena *a, Onnx__GraphProto *g)
{
    LsNames read = {.arena = a};
    size_t kept = 0;
    for (size_t i = 0; i < g->n_node; i++) {
        for (size_t k = 0; k < g->node[i]->n_input; k++)
            ls_names_add(&read, ls_text(g->node[i]->input[k]));
        ls_subgraph_captures(g->node[i], &read);
    }
    for (size_t i = 0; i < g->n_output; i++)
        ls_names_add(&read, ls_text(g->output[i]->name));
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *p = g->node[i];
        bool constant = strcmp(ls_text(p->op_type), "Constant") == 0 && p->n_output == 1;
        if (!constant || ls_names_find(&read, ls_text(p->output[0])) != 0)
            g->node[kept++] = g->node[i];
    }
    g->n_node = kept;
}

/* ---- the bytes: pieces, most of which lie in the model's own files ---- */

static void add_piece(LsCtx *cx, LsOnnxForm *f, const void *bytes, size_t n)
{
    f->piece = ls_arena_grow(cx->arena, f->piece, f->npiece, f->npiece + 1u, sizeof *f->piece,
                             &f->cap_piece);
    f->piece[f->npiece++] = (LsOnnxPiece){.bytes = bytes, .n = n};
    f->bytes += (int64_t)n;
}

static size_t add_message(LsCtx *cx, LsOnnxForm *f, const ProtobufCMessage *m)
{
    const size_t n = protobuf_c_message_get_packed_size(m);
    unsigned char *bytes = ls_arena_alloc(cx->arena, n + 1, 1);
    add_piece(cx, f, bytes, protobuf_c_message_pack(m, bytes));
    return n;
}

static size_t add_head(LsCtx *cx, LsOnnxForm *f, uint32_t number, size_t content)
{
    unsigned char *bytes = ls_arena_alloc(cx->arena, LS_WIRE_HEAD, 1);
    const size_t n = (size_t)(ls_wire_put_head(bytes, number, content) - bytes);
    add_piece(cx, f, bytes, n);
    return n;
}

static size_t head_of(uint32_t number, size_t content)
{
    unsigned char head[LS_WIRE_HEAD];
    return (size_t)(ls_wire_put_head(head, number, content) - head);
}

/* Gives a tensor a comment of blanks, so that its data lie at a multiple of 64 bytes: a program may
 * read them where they are. bytes: before the tensor. */
static void pad_tensor(LsCtx *cx, Onnx__TensorProto *t, int64_t bytes, size_t raw)
{
    static const char blanks[] = "                                                                ";
    enum { LARGE = 1 << 16, LINE = 64 };
    _Static_assert(sizeof blanks > LINE, "a line of blanks");
    if (raw < LARGE || ls_text(t->doc_string)[0] != '\0')
        return;
    for (int k = 0; k < LINE; k++) {
        t->doc_string = k > 0 ? ls_arena_printf(cx->arena, "%.*s", k, blanks) : NULL;
        const size_t own = onnx__tensor_proto__get_packed_size(t) + head_of(FIELD_RAW_DATA, raw);
        if (((size_t)bytes + head_of(FIELD_INITIALIZER, own + raw) + own) % LINE == 0)
            return;
    }
    t->doc_string = NULL;
}

/* An initializer: its other fields, then its raw data. The slot is relative to the first byte. */
static void add_tensor(LsCtx *cx, LsOnnxForm *f, Onnx__TensorProto *t)
{
    const int own = t->data_type;
    const bool has_raw = t->has_raw_data;
    const bool wide = has_raw && own != FLOAT && ls_onnx_type_is_float(own);
    ProtobufCBinaryData raw = t->raw_data;
    if (wide) {
        raw.len = raw.len / (size_t)ls_onnx_type_bytes(own) * sizeof(float);
        t->data_type = FLOAT;
    }
    t->has_raw_data = false;
    if (has_raw && raw.data != NULL)
        pad_tensor(cx, t, f->bytes, raw.len);
    const size_t head_bytes = has_raw ? head_of(FIELD_RAW_DATA, raw.len) : 0;
    add_head(cx, f, FIELD_INITIALIZER,
             onnx__tensor_proto__get_packed_size(t) + head_bytes + (has_raw ? raw.len : 0));
    add_message(cx, f, &t->base);
    t->has_raw_data = has_raw;
    if (!has_raw)
        return;
    add_head(cx, f, FIELD_RAW_DATA, raw.len);
    if (t->data_type == FLOAT)
        f->slot[f->nslot++] = (LsOnnxSlot){ls_text(t->name), f->bytes, (int64_t)raw.len, 0};
    add_piece(cx, f, raw.data, raw.len);
    f->piece[f->npiece - 1].widen = wide ? own : 0;
}

/* Values of adapters that the model itself does not have lie behind it. */
static void add_tail(LsCtx *cx, LsOnnxForm *f, const LsAdapters *a, Onnx__TensorProto *const *list,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = ls_text(list[i]->name);
        if (!ls_adapters_made(a, name))
            continue;
        f->slot[f->nslot++] = (LsOnnxSlot){name, f->bytes, (int64_t)list[i]->raw_data.len, 0};
        add_piece(cx, f, list[i]->raw_data.data, list[i]->raw_data.len);
    }
}

/* Codes of weights lie behind it, too. */
static void add_codes(LsCtx *cx, LsOnnxForm *f)
{
    static const unsigned char zeros[64];
    for (uint32_t k = 0; cx->packed != NULL && k < cx->packed->n; k++) {
        const LsPackedTensor *t = cx->packed->tensor[k];
        const int64_t bytes = ls_packed_parts(&t->codes).end;
        if (!t->used)
            continue;
        add_piece(cx, f, zeros, (size_t)(-(f->bytes + f->shift) & 63));
        f->slot[f->nslot++] =
            (LsOnnxSlot){ls_arena_printf(cx->arena, "%s.codes", t->name), f->bytes, bytes, 0};
        add_piece(cx, f, NULL, (size_t)bytes);
        f->piece[f->npiece - 1].packed = t;
    }
}

/* So do the values with which further members of an ensemble begin. */
static void add_further(LsCtx *cx, LsOnnxForm *f, const LsAdapters *a)
{
    for (uint32_t i = 0; i < f->nslot; i++) {
        const LsAdapterTensor *t = ls_adapters_tensor(a, f->slot[i].name);
        if (t == NULL || t->further == NULL)
            continue;
        f->slot[i].further = f->bytes;
        for (uint32_t k = 0; k < a->nfurther; k++)
            add_piece(cx, f, (const unsigned char *)t->further[k], (size_t)f->slot[i].bytes);
    }
}

/* The model, its graph, the graph's initializers: protocol buffers take fields in any order. of:
 * adapters, whose tensors are left out if they are merged; NULL: there are none. */
static void lay_out(Export *e, Onnx__ModelProto *p, const LsAdapters *of, LsOnnxForm *f)
{
    LsCtx *cx = e->cx;
    const LsAdapters *merged = of != NULL && of->merge ? of : NULL;
    Onnx__GraphProto *g = p->graph;
    const size_t slots = e->nlist + (cx->packed != NULL ? cx->packed->n : 0);
    LsOnnxForm inner = {.slot = ls_arena_alloc(cx->arena, slots + 1, sizeof *inner.slot)};
    g->n_initializer = 0;
    add_message(cx, &inner, &g->base);
    for (size_t i = 0; i < e->nlist; i++)
        if (merged == NULL || !ls_adapters_made(merged, ls_text(e->list[i]->name)))
            add_tensor(cx, &inner, e->list[i]);
    p->graph = NULL;
    *f = (LsOnnxForm){.slot = inner.slot, .nslot = inner.nslot};
    add_message(cx, f, &p->base);
    add_head(cx, f, FIELD_GRAPH, (size_t)inner.bytes);
    f->shift = -f->bytes & 63;
    for (uint32_t i = 0; i < f->nslot; i++)
        f->slot[i].offset += f->bytes;
    for (uint32_t i = 0; i < inner.npiece; i++) {
        add_piece(cx, f, inner.piece[i].bytes, inner.piece[i].n);
        f->piece[f->npiece - 1].widen = inner.piece[i].widen;
    }
    const int64_t model = f->bytes;
    if (merged != NULL)
        add_tail(cx, f, merged, e->list, e->nlist);
    if (of != NULL)
        add_further(cx, f, of);
    add_codes(cx, f);
    f->tail = f->bytes - model;
    p->graph = g;
    g->initializer = e->list;
    g->n_initializer = e->nlist;
}

/* What an earlier run said of itself (runtime/trainer/export_notes.h) is not true of the next one;
 * alphabet and classes are the model's own. */
static void drop_notes(Onnx__ModelProto *p)
{
    static const char *const kept[] = {"lowerset.alphabet", "lowerset.classes"};
    size_t n = 0;
    for (size_t i = 0; i < p->n_metadata_props; i++) {
        const char *key = ls_text(p->metadata_props[i]->key);
        if (strncmp(key, "lowerset.", 9) != 0 || strcmp(key, kept[0]) == 0
            || strcmp(key, kept[1]) == 0)
            p->metadata_props[n++] = p->metadata_props[i];
    }
    p->n_metadata_props = n;
}

bool ls_onnx_eval_form(LsCtx *cx, const char *path, const LsImportOptions *o, LsOnnxForm *f)
{
    LsOnnxModel *m = ls_onnx_open(cx, path, o);
    if (m == NULL || !ls_onnx_resolve(cx, m))
        return false;
    cx->parsed = NULL;          /* the code below changes the structures */
    Onnx__ModelProto *p = m->proto;
    Onnx__GraphProto *g = p->graph;
    size_t ids = m->names.n + 1, most = g->n_initializer + g->n_node + 1;
    Export e = {.cx = cx, .m = m, .data = {.dir = m->dir, .home = m->home}};
    e.list = ls_arena_alloc(cx->arena, most, sizeof *e.list);
    e.tensor = ls_arena_alloc(cx->arena, ids, sizeof *e.tensor);
    e.gone = ls_arena_alloc(cx->arena, g->n_node + 1, sizeof *e.gone);
    bool other = ls_onnx_has_other_reals(p) || has_narrow_constant(m);
    if (other && !ls_onnx_all_float(cx, p))
        return false;
    if (!take_initializers(&e))
        return false;
    take_nodes(&e, o);
    drop_nodes(&e, g);
    if (o->adapters != NULL && o->adapters->merge)
        ls_adapters_remove(o->adapters, g);
    ls_onnx_infer_form(cx->arena, p, other ? &m->names : NULL);
    drop_unread_constants(cx->arena, g);
    p->n_training_info = 0;
    drop_notes(p);
    p->ir_version = p->ir_version < 4 ? 4 : p->ir_version;  /* initializers need not be inputs */
    lay_out(&e, p, o->adapters, f);
    return true;
}
