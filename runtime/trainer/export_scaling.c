/* runtime/trainer/export_scaling.c -- see export_scaling.h. Fields have the numbers of
 * onnx.proto. */
#include "runtime/trainer/export_scaling.h"

#include "runtime/base/proto_field.h"
#include "runtime/trainer/export_notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GRAPH = LS_PROTO_BYTES(7),
    GRAPH_NODE = LS_PROTO_BYTES(1),
    GRAPH_INITIALIZER = LS_PROTO_BYTES(5),
    GRAPH_INPUT = LS_PROTO_BYTES(11),
    NODE_INPUT = LS_PROTO_BYTES(1),
    NODE_OUTPUT = LS_PROTO_BYTES(2),
    NODE_NAME = LS_PROTO_BYTES(3),
    NODE_OP = LS_PROTO_BYTES(4),
    NODE_ATTRIBUTE = LS_PROTO_BYTES(5),
    ATTRIBUTE_NAME = LS_PROTO_BYTES(1),
    ATTRIBUTE_INT = LS_PROTO_VARINT(3),
    ATTRIBUTE_TYPE = LS_PROTO_VARINT(20),
    ATTRIBUTE_IS_INT = 2,
    TENSOR_DIMS = LS_PROTO_VARINT(1),
    TENSOR_TYPE = LS_PROTO_VARINT(2),
    TENSOR_NAME = LS_PROTO_BYTES(8),
    TENSOR_RAW = LS_PROTO_BYTES(9),
    VALUE_NAME = LS_PROTO_BYTES(1),
    VALUE_TYPE = LS_PROTO_BYTES(2),
    TYPE_TENSOR = LS_PROTO_BYTES(1),
    ELEMENT = LS_PROTO_VARINT(1),
    SHAPE = LS_PROTO_BYTES(2),
    ONNX_FLOAT = 1,
    ONNX_UINT8 = 2
};
enum { NAME = 1024, SMALL = 4 * NAME };

/* A message that grows. */
typedef struct Message { unsigned char *at; size_t n, room; bool failed; } Message;

static unsigned char *grow(Message *m, size_t n)
{
    if (!m->failed && m->n + n > m->room) {
        const size_t room = 2 * (m->n + n) + 256;
        unsigned char *at = realloc(m->at, room);
        m->failed = at == NULL;
        if (at != NULL) {
            m->at = at;
            m->room = room;
        }
    }
    return m->failed ? NULL : m->at + m->n;
}

static void put_field(Message *m, uint64_t tag, const void *data, size_t n)
{
    unsigned char *at = grow(m, n + 2 * LS_PROTO_VARINT_MOST);
    if (at != NULL)
        m->n = (size_t)(ls_proto_put_bytes(at, tag, data, n) - m->at);
}

static void put_text(Message *m, uint64_t tag, const char *text)
{
    put_field(m, tag, text, strlen(text));
}

static void put_number(Message *m, uint64_t tag, uint64_t v)
{
    unsigned char *at = grow(m, 2 * LS_PROTO_VARINT_MOST);
    if (at != NULL)
        m->n = (size_t)(ls_proto_put(ls_proto_put(at, tag), v) - m->at);
}

static void put_message(Message *m, uint64_t tag, Message *inner)
{
    m->failed |= inner->failed;
    put_field(m, tag, inner->at, inner->n);
    free(inner->at);
}

/* ---- nodes ---- */

/* A node of one or two operands; `to_float`: a Cast. */
static void put_node(Message *graph, const char *op, const char *a, const char *b, const char *out)
{
    char name[NAME + 32];
    Message node = {0};
    snprintf(name, sizeof name, "lowerset.%s.%s", op, out);
    put_text(&node, NODE_INPUT, a);
    if (b != NULL)
        put_text(&node, NODE_INPUT, b);
    put_text(&node, NODE_OUTPUT, out);
    put_text(&node, NODE_NAME, name);
    put_text(&node, NODE_OP, op);
    if (strcmp(op, "Cast") == 0) {
        Message to = {0};
        put_text(&to, ATTRIBUTE_NAME, "to");
        put_number(&to, ATTRIBUTE_INT, ONNX_FLOAT);
        put_number(&to, ATTRIBUTE_TYPE, ATTRIBUTE_IS_INT);
        put_message(&node, NODE_ATTRIBUTE, &to);
    }
    put_message(graph, GRAPH_NODE, &node);
}

/* A constant: n numbers along axis 1 of `rank` axes; n 1: a scalar. */
static void put_constant(Message *graph, const char *name, const double *v, int64_t n, int rank)
{
    Message t = {0};
    float *raw = malloc((size_t)n * sizeof *raw);
    for (int d = 0; n > 1 && d < rank; d++)
        put_number(&t, TENSOR_DIMS, d == 1 ? (uint64_t)n : 1);
    put_number(&t, TENSOR_TYPE, ONNX_FLOAT);
    put_text(&t, TENSOR_NAME, name);
    for (int64_t k = 0; raw != NULL && k < n; k++)
        raw[k] = (float)v[k];
    t.failed |= raw == NULL;
    put_field(&t, TENSOR_RAW, raw, (size_t)n * sizeof *raw);
    free(raw);
    put_message(graph, GRAPH_INITIALIZER, &t);
}

typedef struct Chain { Message *graph; const char *input; char at[NAME]; } Chain;

/* One more node; the last one gives the input itself. */
static void put_link(Chain *c, const char *op, const double *v, int64_t n, int rank, bool last)
{
    char constant[NAME], out[NAME];
    snprintf(constant, sizeof constant, "%.900s_%s_by", c->input, op);
    snprintf(out, sizeof out, last ? "%.900s" : "%.900s_%s", c->input, op);
    if (v != NULL)
        put_constant(c->graph, constant, v, n, rank);
    put_node(c->graph, op, c->at, v != NULL ? constant : NULL, out);
    memcpy(c->at, out, sizeof out);
}

static void put_chain(Message *graph, const LsInput *in, const LsSource *s, const char *raw)
{
    Chain c = {.graph = graph, .input = in->t.name};
    const double scale = ls_source_scale(s);
    const bool bytes = s->array.type == LS_U8, scales = scale != 1, means = s->mean != NULL;
    snprintf(c.at, sizeof c.at, "%.1000s", raw);
    if (bytes)
        put_link(&c, "Cast", NULL, 0, 0, !scales && !means);
    if (scales)
        put_link(&c, "Mul", &scale, 1, in->t.rank, !means);
    if (means) {
        put_link(&c, "Sub", s->mean, s->channel, in->t.rank, false);
        put_link(&c, "Div", s->std, s->channel, in->t.rank, true);
    }
}

/* ---- the file ---- */

static LsProtoBytes field_of(LsProtoBytes of, uint64_t tag)
{
    LsProtoField f;
    while (ls_proto_next(&of, &f))
        if (f.tag == tag)
            return f.held;
    return (LsProtoBytes){0};
}

/* The new input, with the shape of the old one. */
static void put_input(Message *graph, LsProtoBytes old, const char *raw, bool bytes)
{
    const LsProtoBytes tensor = field_of(field_of(old, VALUE_TYPE), TYPE_TENSOR),
                       shape = field_of(tensor, SHAPE);
    Message value = {0}, type = {0}, of = {0};
    put_number(&of, ELEMENT, bytes ? ONNX_UINT8 : ONNX_FLOAT);
    if (shape.p != NULL)
        put_field(&of, SHAPE, shape.p, ls_proto_size(shape));
    put_message(&type, TYPE_TENSOR, &of);
    put_text(&value, VALUE_NAME, raw);
    put_message(&value, VALUE_TYPE, &type);
    put_message(graph, GRAPH_INPUT, &value);
}

static bool is_scaled(const LsDataset *d, uint32_t k)
{
    const LsSource *s = &d->source[k];
    return d->p->input[k].t.type == LS_DT_REAL && !d->p->input[k].is_label
           && (ls_source_scale(s) != 1 || s->mean != NULL);
}

bool ls_front_check(const LsDataset *d, LsError *e)
{
    for (uint32_t k = 0; d->p != NULL && k < d->p->ninput; k++)
        if (is_scaled(d, k))
            return true;
    return ls_fail(e, LS_EXIT_USAGE,
                   "--export-scaling: the data are not scaled, so the model takes them as they "
                   "are");
}

/* Finds the graph's own field of the input. */
static bool find_input(const LsProgram *p, LsProtoBytes graph, const char *name, LsProtoField *in,
                       size_t *at)
{
    while (ls_proto_next(&graph, in))
        if (in->tag == GRAPH_INPUT && ls_proto_equals(field_of(in->held, VALUE_NAME), name)) {
            *at = (size_t)(in->whole.p - p->file.onnx);
            return true;
        }
    return false;
}

bool ls_front_make(LsFront *f, const LsProgram *p, const LsDataset *d, LsError *e)
{
    LsProtoBytes file = {p->file.onnx, p->file.onnx + p->file.bytes};
    LsProtoField graph, in;
    Message front = {0};
    *f = (LsFront){.input = calloc(p->ninput + 1, sizeof *f->input)};
    while (ls_proto_next(&file, &graph) && graph.tag != GRAPH)
        continue;
    if (graph.tag != GRAPH || f->input == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --export");
    for (uint32_t k = 0; k < p->ninput; k++) {
        char raw[NAME];
        if (!is_scaled(d, k)
            || !find_input(p, graph.held, p->input[k].t.name, &in, &f->input[f->ninput]))
            continue;
        f->ninput++;
        snprintf(raw, sizeof raw, "%.900s_raw", p->input[k].t.name);
        put_input(&front, in.held, raw, d->source[k].array.type == LS_U8);
        put_chain(&front, &p->input[k], &d->source[k], raw);
    }
    f->bytes = front.at;
    f->n = front.n;
    f->head_at = (size_t)(graph.whole.p - p->file.onnx);
    f->graph_at = (size_t)(graph.held.p - p->file.onnx);
    f->nhead = (size_t)(ls_proto_put_head(f->head, GRAPH, front.n + ls_proto_size(graph.held))
                        - f->head);
    return !front.failed || ls_fail(e, LS_EXIT_FAIL, "no memory for --export");
}

void ls_front_free(LsFront *f)
{
    free(f->bytes);
    free(f->input);
    *f = (LsFront){0};
}
