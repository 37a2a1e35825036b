/* compiler/onnx_file/onnx_skim.c -- removes the data of large initializers from a model's bytes.
 *
 * Unpacking copies all data, and planning needs none of them. So the data of the graph's
 * initializers are cut out before unpacking, and afterwards refer to their place in the file, from
 * where they are read on demand. */
#include "compiler/onnx_file/onnx_skim.h"

#include <string.h>

#include "compiler/onnx_file/onnx_wire_field.h"

enum { MODEL_GRAPH = 7, GRAPH_INITIALIZER = 5, TENSOR_RAW = 9, LARGE = 4096 };

struct LsSlimPart { uint32_t tensor; const unsigned char *data; size_t len; };

typedef struct Field {          /* LsWireField with its total bytes, key and length included */
    LsWireField f;
    const unsigned char *from, *end;
} Field;

static bool next(const unsigned char **at, const unsigned char *end, Field *w)
{
    w->from = *at;
    bool is = ls_wire_next(at, end, &w->f);
    w->end = *at;
    return is;
}

/* The only field of that number that holds bytes; false: no such field, or several. */
static bool only(const unsigned char *p, const unsigned char *end, uint32_t number, Field *found)
{
    Field w;
    int n = 0;
    while (next(&p, end, &w))
        if (w.f.number == number && w.f.type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED && ++n == 1)
            *found = w;
    return n == 1;
}

static unsigned char *put(unsigned char *to, const unsigned char *from, const unsigned char *end)
{
    if (end > from)
        memcpy(to, from, (size_t)(end - from));
    return to + (end - from);
}

/* Writes an initializer without its data, which become part k; small initializers are written
 * whole. */
static unsigned char *put_tensor(LsSlim *s, unsigned char *to, const Field *t, uint32_t k)
{
    const unsigned char *end = t->f.data + t->f.len;
    Field raw;
    if (!only(t->f.data, end, TENSOR_RAW, &raw) || raw.f.len < LARGE)
        return put(to, t->from, t->end);
    s->part[s->npart++] = (struct LsSlimPart){k, raw.f.data, raw.f.len};
    to = ls_wire_put_head(to, GRAPH_INITIALIZER, t->f.len - (size_t)(raw.end - raw.from));
    to = put(to, t->f.data, raw.from);
    return put(to, raw.end, end);
}

/* Bytes of the initializers' data to cut out, and their number. */
static size_t count(const Field *graph, uint32_t *n)
{
    const unsigned char *p = graph->f.data, *end = p + graph->f.len;
    size_t bytes = 0;
    Field t, raw;
    for (*n = 0; next(&p, end, &t);)
        if (t.f.number == GRAPH_INITIALIZER
            && only(t.f.data, t.f.data + t.f.len, TENSOR_RAW, &raw) && raw.f.len >= LARGE) {
            bytes += raw.f.len;
            ++*n;
        }
    return bytes;
}

static size_t put_graph(LsSlim *s, unsigned char *body, const Field *graph)
{
    const unsigned char *p = graph->f.data, *end = p + graph->f.len;
    unsigned char *to = body;
    uint32_t k = 0;
    for (Field t; next(&p, end, &t);)
        to = t.f.number == GRAPH_INITIALIZER ? put_tensor(s, to, &t, k++)
                                             : put(to, t.from, t.end);
    return (size_t)(to - body);
}

bool ls_slim(LsArena *a, const unsigned char *bytes, size_t n, LsSlim *s)
{
    Field graph;
    uint32_t parts;
    if (!only(bytes, bytes + n, MODEL_GRAPH, &graph))
        return false;
    size_t room = n - count(&graph, &parts);
    if (parts == 0)
        return false;
    unsigned char *body = ls_arena_alloc(a, room, 1);
    *s = (LsSlim){.bytes = ls_arena_alloc(a, room, 1),
                  .part = ls_arena_alloc(a, parts, sizeof *s->part)};
    size_t len = put_graph(s, body, &graph);
    unsigned char *to = put(s->bytes, bytes, graph.from);
    to = ls_wire_put_head(to, MODEL_GRAPH, len);
    to = put(to, body, body + len);
    to = put(to, graph.end, bytes + n);
    s->n = (size_t)(to - s->bytes);
    return true;
}

void ls_slim_restore(const LsSlim *s, Onnx__GraphProto *g)
{
    for (uint32_t i = 0; i < s->npart; i++) {
        Onnx__TensorProto *t = g->initializer[s->part[i].tensor];
        t->has_raw_data = true;
        t->raw_data = (ProtobufCBinaryData){s->part[i].len, (uint8_t *)s->part[i].data};
    }
}
