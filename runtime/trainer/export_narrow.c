/* runtime/trainer/export_narrow.c -- see export_narrow.h. The embedded file is copied field by
 * field. Fields of ModelProto, GraphProto, NodeProto and TensorProto have the numbers of
 * onnx.proto. */
#include "runtime/trainer/export_narrow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/proto_field.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/trainer/export_values.h"

enum {
    MODEL_GRAPH = LS_PROTO_BYTES(7),
    MODEL_OPSET = LS_PROTO_BYTES(8),
    OPSET_DOMAIN = LS_PROTO_BYTES(1),
    OPSET_VERSION = LS_PROTO_VARINT(2),
    GRAPH_NODE = LS_PROTO_BYTES(1),
    GRAPH_INITIALIZER = LS_PROTO_BYTES(5),
    GRAPH_INPUT = LS_PROTO_BYTES(11),
    GRAPH_OUTPUT = LS_PROTO_BYTES(12),
    GRAPH_VALUE = LS_PROTO_BYTES(13),
    NODE_INPUT = LS_PROTO_BYTES(1),
    NODE_OUTPUT = LS_PROTO_BYTES(2),
    NODE_OP = LS_PROTO_BYTES(4),
    NODE_ATTRIBUTE = LS_PROTO_BYTES(5),
    ATTRIBUTE_GRAPH = LS_PROTO_BYTES(6),
    ATTRIBUTE_GRAPHS = LS_PROTO_BYTES(11),
    TENSOR_TYPE = LS_PROTO_VARINT(2),
    TENSOR_NAME = LS_PROTO_BYTES(8),
    TENSOR_RAW = LS_PROTO_BYTES(9),
    VALUE_NAME = LS_PROTO_BYTES(1),
};
/* AttributeProto of Cast: name "to", i = 1 (FLOAT), type = 2 (INT). */
static const unsigned char to_float[] = {
    LS_PROTO_BYTES(1), 2, 't', 'o', LS_PROTO_VARINT(3), 1, 0xa0, 1, 2};
enum { FLOAT16 = 10, BFLOAT16 = 16 };
enum { OTHERS = 1 << 16 };      /* bytes of a model beside its graph, at most */

/* Counts the bytes that it is given, and writes them if there is an output. */
typedef struct Sink { LsOut *o; const LsMemory *m; size_t n; } Sink;

typedef struct Narrow {
    const LsMemory *m;
    LsDataType type;
    bool *narrow;               /* by state: becomes narrow */
    LsExternal *external;       /* where tensors' data lie; NULL: in the model */
    char suffix[32];            /* of the name of the widened weight, which nodes read */
} Narrow;

/* Puts the content of a message, changed. */
typedef void Put(Sink *, const Narrow *, LsProtoBytes);

bool ls_export_type(const char *word, LsDataType *type)
{
    static const struct { const char *word; LsDataType type; } known[] = {
        {"f32", LS_DT_REAL}, {"f16", LS_DT_F16}, {"bf16", LS_DT_BF16}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcmp(word, known[k].word) == 0)
            return *type = known[k].type, true;
    return false;
}

bool ls_export_narrow_can(const LsProgram *p, LsDataType type, LsError *e)
{
    const uint64_t least = type == LS_DT_BF16 ? 13 : 6;
    uint64_t opset = 0;
    LsProtoBytes file = {p->file.onnx, p->file.onnx + p->file.bytes};
    LsProtoField f, part;
    while (type != LS_DT_REAL && ls_proto_next(&file, &f)) {
        LsProtoBytes domain = {0};
        uint64_t version = 0;
        while (f.tag == MODEL_OPSET && ls_proto_next(&f.held, &part)) {
            domain = part.tag == OPSET_DOMAIN ? part.held : domain;
            version = part.tag == OPSET_VERSION ? part.value : version;
        }
        if (ls_proto_size(domain) == 0 || ls_proto_equals(domain, "ai.onnx"))
            opset = version > opset ? version : opset;
    }
    return type == LS_DT_REAL || opset >= least
           || ls_fail(
               e, LS_EXIT_USAGE,
               "--export-precision: the model has opset %d, and Cast takes %s from opset %d on",
               (int)opset, type == LS_DT_BF16 ? "bfloat16" : "float16", (int)least);
}

static void put(Sink *s, const void *data, size_t n)
{
    s->n += n;
    if (s->o != NULL)
        ls_out_write(s->o, data, n);
}

/* Bytes of the embedded file. */
static void put_bytes(Sink *s, LsProtoBytes b)
{
    s->n += ls_proto_size(b);
    if (s->o != NULL)
        ls_export_copy(s->o, s->m, b.p, ls_proto_size(b));
}

static void put_head(Sink *s, uint64_t tag, size_t content)
{
    unsigned char head[2 * LS_PROTO_VARINT_MOST];
    put(s, head, (size_t)(ls_proto_put_head(head, tag, content) - head));
}

/* A field of text, which a suffix may end. */
static void put_text(Sink *s, uint64_t tag, LsProtoBytes text, const char *suffix)
{
    put_head(s, tag, ls_proto_size(text) + strlen(suffix));
    put_bytes(s, text);
    put(s, suffix, strlen(suffix));
}

/* The same for a message. */
static void put_message(Sink *s, const Narrow *n, uint64_t tag, Put *content, LsProtoBytes of)
{
    Sink size = {0};
    content(&size, n, of);
    put_head(s, tag, size.n);
    content(s, n, of);
}

/* ---- weights ---- */

/* An initializer. */
typedef struct Weight {
    const LsStateTensor *state; /* that the program trains, or keeps as a statistic; NULL: none */
    LsProtoBytes name, raw;
    bool narrow;
    const LsExternalTensor *beside;     /* NULL: its data lie in the model */
} Weight;

static void find_state(const Narrow *n, Weight *w)
{
    const LsProgram *p = n->m->p;
    for (uint32_t k = 0; k < p->nstate + p->npacked; k++)
        if (ls_exported(p, k)->onnx_offset == w->raw.p - p->file.onnx && ls_is_exported(p, k))
            w->state = ls_exported(p, k), w->narrow = n->narrow[k];
}

/* False: the field is no initializer with data that change or lie beside the model. */
static bool find_weight(const Narrow *n, LsProtoField f, Weight *w)
{
    LsProtoField part;
    *w = (Weight){0};
    if (f.tag != GRAPH_INITIALIZER)
        return false;
    while (ls_proto_next(&f.held, &part))
        if (part.tag == TENSOR_NAME)
            w->name = part.held;
        else if (part.tag == TENSOR_RAW)
            w->raw = part.held;
    if (w->raw.p == NULL || w->name.p == NULL)
        return false;
    find_state(n, w);
    w->beside = n->external != NULL ? ls_external_find(n->external, w->raw.p) : NULL;
    return w->state != NULL || w->beside != NULL;
}

/* The name of an input, an output or a value. */
static LsProtoBytes name_of(LsProtoField f)
{
    LsProtoField part;
    LsProtoBytes name = {0};
    while (ls_proto_next(&f.held, &part))
        name = part.tag == VALUE_NAME ? part.held : name;
    return name;
}

static bool is_output(LsProtoBytes graph, const char *name)
{
    LsProtoField f;
    while (ls_proto_next(&graph, &f))
        if (f.tag == GRAPH_OUTPUT && ls_proto_equals(name_of(f), name))
            return true;
    return false;
}

/* The name of the tensor whose place the state has. */
static const char *name_in_file(const LsProgram *p, const LsStateTensor *s)
{
    for (uint32_t k = 0; k < p->nstate && s->kind == LS_STATE_AVERAGE; k++)
        if (p->state[k].kind == LS_STATE_PARAM && p->state[k].onnx_offset == s->onnx_offset)
            return p->state[k].t.name;
    return s->t.name;
}

/* Decides which weights become narrow. */
static void choose(Narrow *n, LsProtoBytes graph, const char *path)
{
    const LsProgram *p = n->m->p;
    for (uint32_t k = 0; k < p->nstate + p->npacked && n->type != LS_DT_REAL; k++) {
        const LsStateTensor *s = ls_exported(p, k);
        const char *name = name_in_file(p, s);
        if (!ls_is_exported(p, k) || s->kind == LS_STATE_STAT || is_output(graph, name))
            continue;
        const float far = n->type == LS_DT_F16 ? ls_export_too_large(n->m, s) : 0;
        n->narrow[k] = far == 0;
        if (far != 0)
            fprintf(stderr,
                    "note: %s: '%s' stays float32, as it has %g and float16 ends at 65504\n", path,
                    name, (double)far);
    }
}

/* Gives tensors their places in the second file. */
static bool place(const Narrow *n, LsProtoBytes graph, const char *path, LsError *e)
{
    uint32_t count = 0;
    LsProtoField f;
    Weight w;
    for (LsProtoBytes at = graph; ls_proto_next(&at, &f);)
        count += f.tag == GRAPH_INITIALIZER;
    if (!ls_external_open(n->external, path, count, e))
        return false;
    while (ls_proto_next(&graph, &f)) {
        find_weight(n, f, &w);
        const int64_t bytes = (int64_t)ls_proto_size(w.raw);
        if (w.raw.p != NULL)
            ls_external_add(n->external,
                            &(LsExternalTensor){w.raw.p, 0, w.narrow ? bytes / 2 : bytes, w.state,
                                                w.narrow});
    }
    return true;
}

/* ---- the new messages ---- */

static bool is_narrow(const Narrow *n, LsProtoBytes name)
{
    const LsProgram *p = n->m->p;
    for (uint32_t k = 0; k < p->nstate + p->npacked; k++)
        if (n->narrow[k] && ls_proto_equals(name, name_in_file(p, ls_exported(p, k))))
            return true;
    return false;
}

/* The Cast that reads the weight of this name. */
static void put_cast(Sink *s, const Narrow *n, LsProtoBytes name)
{
    static const char op[] = "Cast";
    put_text(s, NODE_INPUT, name, "");
    put_text(s, NODE_OUTPUT, name, n->suffix);
    put_head(s, NODE_OP, strlen(op));
    put(s, op, strlen(op));
    put_head(s, NODE_ATTRIBUTE, sizeof to_float);
    put(s, to_float, sizeof to_float);
}

static Put put_body;

static void put_attribute(Sink *s, const Narrow *n, LsProtoBytes attribute)
{
    LsProtoField f;
    while (ls_proto_next(&attribute, &f))
        if (f.tag == ATTRIBUTE_GRAPH || f.tag == ATTRIBUTE_GRAPHS)
            put_message(s, n, f.tag, put_body, f.held);
        else
            put_bytes(s, f.whole);
}

/* A node reads widened weights, and so do the bodies in its attributes. */
static void put_node(Sink *s, const Narrow *n, LsProtoBytes node)
{
    LsProtoField f;
    while (ls_proto_next(&node, &f))
        if (f.tag == NODE_INPUT && is_narrow(n, f.held))
            put_text(s, NODE_INPUT, f.held, n->suffix);
        else if (f.tag == NODE_ATTRIBUTE)
            put_message(s, n, f.tag, put_attribute, f.held);
        else
            put_bytes(s, f.whole);
}

/* The description of a body's output, which may be a weight. */
static void put_value(Sink *s, const Narrow *n, LsProtoBytes value)
{
    LsProtoField f;
    while (ls_proto_next(&value, &f))
        if (f.tag == VALUE_NAME && is_narrow(n, f.held))
            put_text(s, VALUE_NAME, f.held, n->suffix);
        else
            put_bytes(s, f.whole);
}

static void put_body(Sink *s, const Narrow *n, LsProtoBytes body)
{
    LsProtoField f;
    while (ls_proto_next(&body, &f))
        if (f.tag == GRAPH_NODE || f.tag == GRAPH_OUTPUT)
            put_message(s, n, f.tag, f.tag == GRAPH_NODE ? put_node : put_value, f.held);
        else
            put_bytes(s, f.whole);
}

/* A weight that is narrow, or lies beside the model. */
static void put_tensor(Sink *s, const Narrow *n, const Weight *w, LsProtoBytes tensor)
{
    const unsigned char type[] = {TENSOR_TYPE, n->type == LS_DT_F16 ? FLOAT16 : BFLOAT16};
    unsigned char where[LS_EXTERNAL_FIELDS];
    LsProtoField f;
    while (ls_proto_next(&tensor, &f))
        if (f.tag != TENSOR_RAW && (f.tag != TENSOR_TYPE || !w->narrow))
            put_bytes(s, f.whole);
    if (w->narrow)
        put(s, type, sizeof type);
    if (w->beside != NULL) {
        put(s, where, (size_t)(ls_external_fields(n->external, w->beside, where) - where));
        return;
    }
    const size_t bytes = (size_t)ls_tensor_count(&w->state->t) * sizeof(uint16_t);
    put_head(s, TENSOR_RAW, bytes);
    s->n += bytes;
    if (s->o != NULL)
        ls_export_values(s->o, n->m, w->state, n->type);
}

/* A description of a weight: among the inputs of old files, or as a value. It has another type
 * now. */
static bool describes_weight(const Narrow *n, LsProtoField f)
{
    return (f.tag == GRAPH_INPUT || f.tag == GRAPH_VALUE) && is_narrow(n, name_of(f));
}

static void put_graph(Sink *s, const Narrow *n, LsProtoBytes graph)
{
    LsProtoField f;
    Weight w;
    for (LsProtoBytes at = graph; ls_proto_next(&at, &f);)      /* nodes follow what they read */
        if (find_weight(n, f, &w) && w.narrow)
            put_message(s, n, GRAPH_NODE, put_cast, w.name);
    for (LsProtoBytes at = graph; ls_proto_next(&at, &f);) {
        const bool known = find_weight(n, f, &w);
        if (known && (w.narrow || w.beside != NULL)) {
            Sink size = {0};
            put_tensor(&size, n, &w, f.held);
            put_head(s, GRAPH_INITIALIZER, size.n);
            put_tensor(s, n, &w, f.held);
        } else if (known) {
            int64_t at = s->o != NULL ? s->o->at + (w.raw.p - f.whole.p) : 0;
            put_bytes(s, f.whole);
            if (s->o != NULL)
                ls_export_patch(s->o, n->m, w.state, at);
        } else if (f.tag == GRAPH_NODE) {
            put_message(s, n, GRAPH_NODE, put_node, f.held);
        } else if (!describes_weight(n, f)) {
            put_bytes(s, f.whole);
        }
    }
}

/* Whether the text occurs in the graph, anywhere but in tensors' data. */
static bool occurs(LsProtoBytes graph, const char *text)
{
    LsProtoField f, part;
    while (ls_proto_next(&graph, &f)) {
        if (f.tag != GRAPH_INITIALIZER
            && memmem(f.held.p, ls_proto_size(f.held), text, strlen(text)) != NULL)
            return true;
        while (f.tag == GRAPH_INITIALIZER && ls_proto_next(&f.held, &part))
            if (part.tag == TENSOR_NAME
                && memmem(part.held.p, ls_proto_size(part.held), text, strlen(text)) != NULL)
                return true;
    }
    return false;
}

/* The graph, with its head. */
static bool put_model_graph(Sink *s, Narrow *n, LsProtoBytes graph, const char *path, LsError *e)
{
    for (size_t end = strlen(n->suffix); end + 1 < sizeof n->suffix && occurs(graph, n->suffix);
         end++)
        n->suffix[end] = '_';
    choose(n, graph, path);
    if (n->external != NULL && !place(n, graph, path, e))
        return false;
    Sink size = {0};
    put_graph(&size, n, graph);
    if (size.n > INT32_MAX - OTHERS)
        return ls_fail(e, LS_EXIT_FAIL,
                       "%s: cannot write: the file would have %zu bytes, and an ONNX file has at "
                       "most 2 GiB%s",
                       path, size.n,
                       n->external == NULL ? ": --export-external writes two files" : "");
    put_message(s, n, MODEL_GRAPH, put_graph, graph);
    return true;
}

bool ls_export_narrow(LsOut *o, const LsMemory *m, LsDataType type, LsExternal *external,
                      const char *path, LsError *e)
{
    Narrow n = {.m = m,
                .type = type,
                .narrow = calloc(m->p->nstate + m->p->npacked + 1, sizeof *n.narrow),
                .external = external,
                .suffix = ".f32"};
    LsProtoBytes file = {m->p->file.onnx, m->p->file.onnx + m->p->file.bytes};
    LsProtoField f;
    Sink s = {.o = o, .m = m};
    if (n.narrow == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --export");
    bool ok = true;
    while (ok && ls_proto_next(&file, &f))
        if (f.tag == MODEL_GRAPH)
            ok = put_model_graph(&s, &n, f.held, path, e);
        else
            put_bytes(&s, f.whole);
    free(n.narrow);
    return ok;
}
