/* runtime/trainer/export_narrow.c -- see export_narrow.h. The embedded file is copied field by
 * field. Fields of ModelProto, GraphProto, NodeProto and TensorProto have the numbers of
 * onnx.proto. */
#include "runtime/trainer/export_narrow.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/let_go.h"
#include "runtime/base/proto_field.h"
#include "runtime/ls_half.h"
#include "runtime/trainer/state_floats.h"

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
enum { PART = 4096 };           /* elements converted at a time */

/* Counts the bytes that it is given, and writes them if there is an output. */
typedef struct Sink { LsOut *o; const LsMemory *m; size_t n; } Sink;

typedef struct Narrow {
    const LsMemory *m;
    LsDataType type;
    bool *narrow;               /* by state: becomes narrow */
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

static uint16_t rounded(LsDataType type, float x)
{
    return type == LS_DT_F16 ? ls_to_f16(ls_nearest_f16(x)).bits
                             : ls_to_bf16(ls_nearest_bf16(x)).bits;
}

/* Rounds the elements of a weight, in the order of the file, and writes them. Without an output it
 * only looks whether each finite number stays finite, and returns the first that does not, else
 * 0. */
static float convert(const Narrow *n, const LsStateTensor *s, LsOut *o)
{
    float part[PART];
    uint16_t to[PART];
    LsStateFloats f = ls_state_floats(n->m, s);
    for (int64_t left = ls_tensor_count(&s->t), k; left > 0; left -= k) {
        k = left < PART ? left : PART;
        ls_state_floats_take(&f, part, k);
        for (int64_t i = 0; i < k; i++) {
            to[i] = rounded(n->type, part[i]);
            if (o == NULL && isfinite(part[i]) && (to[i] & 0x7fff) == 0x7c00)
                return part[i];
        }
        if (o != NULL)
            ls_out_write(o, to, (size_t)k * sizeof *to);
    }
    return 0;
}

bool ls_is_exported(const LsProgram *p, uint32_t state)
{
    const LsStateTensor *s = ls_exported(p, state);
    bool averaged = false;
    for (uint32_t k = 0; k < p->nstate && s->kind == LS_STATE_PARAM; k++)
        averaged |=
            p->state[k].kind == LS_STATE_AVERAGE && p->state[k].onnx_offset == s->onnx_offset;
    return s->onnx_offset >= 0 && s->onnx_offset < (int64_t)p->file.bytes && !averaged;
}

bool ls_export_fits(const LsProgram *p, LsDataType type, LsError *e)
{
    int64_t bytes = (int64_t)p->file.bytes;
    for (uint32_t k = 0; k < p->nstate + p->npacked && type != LS_DT_REAL; k++) {
        const LsStateTensor *s = ls_exported(p, k);
        const int64_t members = s->t.members > 0 ? s->t.members : 1;
        if (ls_is_exported(p, k) && s->kind != LS_STATE_STAT)
            bytes -= 2 * ls_tensor_count(&s->t) / members;
    }
    return bytes <= INT32_MAX
           || ls_fail(e, LS_EXIT_USAGE,
                      "--export: the file would have %" PRId64
                      " bytes, and an ONNX file has at most 2 GiB: %s",
                      bytes,
                      type == LS_DT_REAL ? "--export-precision=f16 or bf16 halves the weights, and "
                                           "--save keeps them as they are"
                                         : "--save keeps the weights");
}

void ls_export_copy(LsOut *o, const LsMemory *m, const unsigned char *at, size_t n)
{
    for (size_t k = 0, part; k < n; k += part) {
        part = n - k < LS_LET_GO ? n - k : LS_LET_GO;
        ls_out_write(o, at + k, part);
        ls_memory_let_go(m, at, k + part);
    }
}

void ls_export_patch(LsOut *o, const LsMemory *m, const LsStateTensor *s, int64_t at)
{
    float part[PART];
    LsStateFloats f = ls_state_floats(m, s);
    for (int64_t left = ls_tensor_count(&s->t), n; left > 0; left -= n, at += 4 * n) {
        n = left < PART ? left : PART;
        ls_state_floats_take(&f, part, n);
        ls_out_patch(o, at, part, (size_t)n * sizeof part[0]);
    }
}

/* An initializer that the program trains, or keeps as a statistic. */
typedef struct Weight {
    const LsStateTensor *state;
    LsProtoBytes name;
    const unsigned char *raw;
    bool narrow;
} Weight;

static bool find_weight(const Narrow *n, LsProtoField f, Weight *w)
{
    const LsProgram *p = n->m->p;
    LsProtoField part;
    *w = (Weight){0};
    while (f.tag == GRAPH_INITIALIZER && ls_proto_next(&f.held, &part)) {
        if (part.tag == TENSOR_NAME)
            w->name = part.held;
        for (uint32_t k = 0; part.tag == TENSOR_RAW && k < p->nstate + p->npacked; k++)
            if (ls_is_exported(p, k)
                && ls_exported(p, k)->onnx_offset == part.held.p - p->file.onnx)
                *w = (Weight){ls_exported(p, k), w->name, part.held.p, n->narrow[k]};
    }
    return w->state != NULL && w->name.p != NULL;
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
    for (uint32_t k = 0; k < p->nstate + p->npacked; k++) {
        const LsStateTensor *s = ls_exported(p, k);
        const char *name = name_in_file(p, s);
        if (!ls_is_exported(p, k) || s->kind == LS_STATE_STAT || is_output(graph, name))
            continue;
        const float far = n->type == LS_DT_F16 ? convert(n, s, NULL) : 0;
        n->narrow[k] = far == 0;
        if (far != 0)
            fprintf(stderr,
                    "note: %s: '%s' stays float32, as it has %g and float16 ends at 65504\n", path,
                    name, (double)far);
    }
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

static void put_tensor(Sink *s, const Narrow *n, const Weight *w, LsProtoBytes tensor)
{
    const unsigned char type[] = {TENSOR_TYPE, n->type == LS_DT_F16 ? FLOAT16 : BFLOAT16};
    const size_t bytes = (size_t)ls_tensor_count(&w->state->t) * sizeof(uint16_t);
    LsProtoField f;
    while (ls_proto_next(&tensor, &f))
        if (f.tag != TENSOR_TYPE && f.tag != TENSOR_RAW)
            put_bytes(s, f.whole);
    put(s, type, sizeof type);
    put_head(s, TENSOR_RAW, bytes);
    s->n += bytes;
    if (s->o != NULL)
        convert(n, w->state, s->o);
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
        bool trained = find_weight(n, f, &w);
        if (trained && w.narrow) {
            Sink size = {0};
            put_tensor(&size, n, &w, f.held);
            put_head(s, GRAPH_INITIALIZER, size.n);
            put_tensor(s, n, &w, f.held);
        } else if (trained) {
            int64_t at = s->o != NULL ? s->o->at + (w.raw - f.whole.p) : 0;
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

bool ls_export_narrow(LsOut *o, const LsMemory *m, LsDataType type, const char *path, LsError *e)
{
    Narrow n = {
        .m = m, .type = type, .suffix = "",
        .narrow = calloc(m->p->nstate + m->p->npacked + 1, sizeof *n.narrow)};
    LsProtoBytes file = {m->p->file.onnx, m->p->file.onnx + m->p->file.bytes};
    LsProtoField f;
    Sink s = {.o = o, .m = m};
    if (n.narrow == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --export");
    strcpy(n.suffix, ".f32");
    while (ls_proto_next(&file, &f)) {
        if (f.tag != MODEL_GRAPH) {
            put_bytes(&s, f.whole);
            continue;
        }
        for (size_t end = strlen(n.suffix); end + 1 < sizeof n.suffix && occurs(f.held, n.suffix);
             end++)
            n.suffix[end] = '_';
        choose(&n, f.held, path);
        put_message(&s, &n, MODEL_GRAPH, put_graph, f.held);
    }
    free(n.narrow);
    return true;
}
