/* models/model_write.c -- ONNX files, streamed.
 *
 * A protobuf message is length, then content, so the length of the whole graph must be known first.
 * It is known: everything but the weights is small and packed by protobuf-c, and the bytes of a
 * weight follow from its shape. The file consists of the model fields; the graph's tag and length;
 * the packed graph without initializers; and each initializer as tag, length, packed header, and
 * its raw data in blocks. The order of fields is free in protobuf, so any reader sees an ordinary
 * model. */
#include "models/model_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "models/weight_fill.h"

enum {
    TAG_GRAPH = 0x3a,           /* ModelProto.graph = 7, length-delimited */
    TAG_INITIALIZER = 0x2a,     /* GraphProto.initializer = 5 */
    TAG_RAW_DATA = 0x4a,        /* TensorProto.raw_data = 9 */
    PAGE = 64,                  /* bytes; alignment of external tensors */
};
static const int64_t protobuf_limit = INT64_C(2147483647);

typedef struct Save {
    LsBuild *b;
    const LsModelFile *f;
    const char *data_path, *data_name;  /* the external file: path, and its name in the model */
    Onnx__TensorProto *head;    /* by weight: everything but raw data */
    size_t *head_bytes;
    int64_t end;                /* of the external file, bytes */
    int64_t graph_bytes;        /* of the graph with its initializers */
    bool beside;                /* float weights are in the external file */
} Save;

static int64_t raw_bytes(const LsWeight *w)
{
    return ls_weight_elements(w) * (int64_t)ls_fill_element(w);
}

/* Tables that are not weights stay in the file: the graph cannot be read without them. */
static bool is_beside(const Save *s, const LsWeight *w)
{
    return s->beside && ls_weight_is_float(w);
}

static int varint(uint64_t v, uint8_t out[10])
{
    int n = 0;
    for (; v >= 0x80; v >>= 7)
        out[n++] = (uint8_t)(v | 0x80);
    out[n++] = (uint8_t)v;
    return n;
}

static int64_t delimited(int64_t bytes)     /* including tag and length */
{
    uint8_t buffer[10];
    return 1 + varint((uint64_t)bytes, buffer) + bytes;
}

static void add_entry(LsBuild *b, Onnx__TensorProto *t, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *e = ls_arena_alloc(b->arena, 1, sizeof *e);
    onnx__string_string_entry_proto__init(e);
    e->key = ls_arena_strdup(b->arena, key);
    e->value = ls_arena_strdup(b->arena, value);
    t->external_data[t->n_external_data++] = e;
}

static int element_type(const LsWeight *w)
{
    return w->fill == LS_FILL_COUNT ? ONNX__TENSOR_PROTO__DATA_TYPE__INT64
        : w->fill == LS_FILL_CAUSAL ? ONNX__TENSOR_PROTO__DATA_TYPE__BOOL
        : ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
}

/* Fills s->head[i], and assigns offsets to external tensors. */
static void make_head(Save *s, uint32_t i)
{
    LsBuild *b = s->b;
    LsWeight *w = &b->weight[i];
    Onnx__TensorProto *t = &s->head[i];
    onnx__tensor_proto__init(t);
    t->name = (char *)(uintptr_t)w->name;
    t->n_dims = (size_t)w->rank;
    t->dims = w->dim;
    t->has_data_type = true;
    t->data_type = element_type(w);
    if (is_beside(s, w)) {
        t->has_data_location = true;
        t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
        t->external_data = ls_arena_alloc(b->arena, 3, sizeof *t->external_data);
        add_entry(b, t, "location", s->data_name);
        add_entry(b, t, "offset", ls_build_name(b, "%" PRId64, s->end));
        add_entry(b, t, "length", ls_build_name(b, "%" PRId64, raw_bytes(w)));
        s->end = (s->end + raw_bytes(w) + PAGE - 1) / PAGE * PAGE;
    }
    s->head_bytes[i] = onnx__tensor_proto__get_packed_size(t);
}

static int64_t initializer_bytes(const Save *s, uint32_t i)
{
    const LsWeight *w = &s->b->weight[i];
    return (int64_t)s->head_bytes[i] + (is_beside(s, w) ? 0 : delimited(raw_bytes(w)));
}

static void put_tag(FILE *to, uint8_t tag, int64_t bytes)
{
    uint8_t buffer[10];
    fputc(tag, to);
    fwrite(buffer, 1, (size_t)varint((uint64_t)bytes, buffer), to);
}

static void put_values(const LsWeight *w, uint64_t seed, FILE *to)
{
    int64_t block[LS_FILL_BLOCK], n = ls_weight_elements(w);
    for (int64_t i = 0; i < n && !ferror(to); i += LS_FILL_BLOCK) {
        int64_t k = n - i < LS_FILL_BLOCK ? n - i : LS_FILL_BLOCK;
        ls_fill(w, seed, i, k, block);
        fwrite(block, ls_fill_element(w), (size_t)k, to);
    }
}

static void put_initializer(const Save *s, uint32_t i, FILE *to)
{
    LsBuild *b = s->b;
    const LsWeight *w = &b->weight[i];
    uint8_t *head = ls_arena_alloc(b->arena, s->head_bytes[i], 1);
    onnx__tensor_proto__pack(&s->head[i], head);
    put_tag(to, TAG_INITIALIZER, initializer_bytes(s, i));
    fwrite(head, 1, s->head_bytes[i], to);
    if (!is_beside(s, w)) {
        put_tag(to, TAG_RAW_DATA, raw_bytes(w));
        put_values(w, s->f->seed, to);
    }
}

static void graph_of(LsBuild *b, const LsModelFile *f, Onnx__GraphProto *g)
{
    onnx__graph_proto__init(g);
    g->name = (char *)(uintptr_t)f->name;
    g->node = b->node;
    g->n_node = b->nnode;
    g->input = b->input;
    g->n_input = b->ninput;
    g->output = b->output;
    g->n_output = b->noutput;
}

static uint8_t *pack_model(const LsModelFile *f, LsArena *arena, size_t *bytes)
{
    char domain[] = "", producer[] = "lowerset", version[] = LS_VERSION;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *list[] = {&opset};
    Onnx__ModelProto m = ONNX__MODEL_PROTO__INIT;
    opset.domain = domain;
    opset.has_version = true;
    opset.version = LS_MODEL_OPSET;
    m.has_ir_version = true;
    m.ir_version = LS_MODEL_IR;
    m.producer_name = producer;
    m.producer_version = version;
    m.doc_string = (char *)(uintptr_t)f->doc;
    m.opset_import = list;
    m.n_opset_import = 1;
    *bytes = onnx__model_proto__get_packed_size(&m);
    uint8_t *out = ls_arena_alloc(arena, *bytes, 1);
    onnx__model_proto__pack(&m, out);
    return out;
}

/* Makes the headers of all weights and sums the size of the graph; false: too large for
 * protobuf. */
static bool measure(Save *s)
{
    Onnx__GraphProto g;
    graph_of(s->b, s->f, &g);
    s->graph_bytes = (int64_t)onnx__graph_proto__get_packed_size(&g);
    s->end = 0;
    for (uint32_t i = 0; i < s->b->nweight; i++) {
        make_head(s, i);
        s->graph_bytes += delimited(initializer_bytes(s, i));
    }
    return s->graph_bytes <= protobuf_limit - 4096;     /* room for the model's own fields */
}

/* Opens, writes with `put`, closes; on failure removes the incomplete file, unless it is a
 * device. */
static bool write_file(Save *s, const char *path, void (*put)(Save *, FILE *))
{
    struct stat st;
    FILE *to = fopen(path, "wb");
    if (to == NULL)
        return ls_build_fail(s->b, "cannot write %s: %s", path, strerror(errno));
    bool regular = fstat(fileno(to), &st) == 0 && S_ISREG(st.st_mode);
    put(s, to);
    bool bad = ferror(to) != 0;
    int why = errno;
    if (fclose(to) != 0) {
        bad = true;
        why = errno;
    }
    if (!bad)
        return true;
    if (regular)
        remove(path);
    return ls_build_fail(s->b, "cannot write %s: %s", path, strerror(why));
}

static void put_model(Save *s, FILE *to)
{
    LsBuild *b = s->b;
    Onnx__GraphProto g;
    size_t model_bytes, graph_bytes;
    uint8_t *model = pack_model(s->f, b->arena, &model_bytes);
    graph_of(b, s->f, &g);
    graph_bytes = onnx__graph_proto__get_packed_size(&g);
    uint8_t *graph = ls_arena_alloc(b->arena, graph_bytes, 1);
    onnx__graph_proto__pack(&g, graph);
    fwrite(model, 1, model_bytes, to);
    put_tag(to, TAG_GRAPH, s->graph_bytes);
    fwrite(graph, 1, graph_bytes, to);
    for (uint32_t i = 0; i < b->nweight; i++)
        put_initializer(s, i, to);
}

static void put_data(Save *s, FILE *to)
{
    for (uint32_t i = 0; i < s->b->nweight; i++) {
        const LsWeight *w = &s->b->weight[i];
        if (!is_beside(s, w))
            continue;
        put_values(w, s->f->seed, to);
        for (int64_t n = raw_bytes(w); n % PAGE != 0; n++)
            fputc(0, to);
    }
}

/* "dir/net.onnx" keeps its weights in "dir/net.weights". */
static void name_data(Save *s)
{
    const char *path = s->f->path;
    size_t n = strlen(path);
    if (n > 5 && strcmp(path + n - 5, ".onnx") == 0)
        n -= 5;
    s->data_path = ls_arena_printf(s->b->arena, "%.*s.weights", (int)n, path);
    const char *slash = strrchr(s->data_path, '/');
    s->data_name = slash != NULL ? slash + 1 : s->data_path;
}

bool ls_model_save(LsBuild *b, const LsModelFile *f)
{
    Save s = {.b = b, .f = f, .beside = f->weights != LS_WEIGHTS_RANDOM};
    if (b->failed)
        return false;
    name_data(&s);
    s.head = ls_arena_alloc(b->arena, b->nweight, sizeof *s.head);
    s.head_bytes = ls_arena_alloc(b->arena, b->nweight, sizeof *s.head_bytes);
    if (!measure(&s)) {
        s.beside = true;
        if (!measure(&s))
            return ls_build_fail(b, "the graph alone is larger than protobuf's 2 GiB");
    }
    if (s.beside && f->weights != LS_WEIGHTS_NONE && !write_file(&s, s.data_path, put_data))
        return false;
    return write_file(&s, f->path, put_model);
}
