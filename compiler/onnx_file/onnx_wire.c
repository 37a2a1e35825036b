/* compiler/onnx_file/onnx_wire.c -- checks the wire format, then lets protobuf-c unpack it into the
 * arena.
 *
 * protobuf-c recurses once per nested message without a limit, so depth is limited here first.
 * Initial values point to its copies of raw tensor data, or into the file, which stays mapped. */
#include "compiler/onnx_file/onnx_wire.h"

#include "compiler/onnx_file/onnx_skim.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Depth: model > graph > node > attribute > graph ...: 3 per nested body. Messages become structs
 * of 40 to 250 bytes, which may be 2 bytes in the file; a node as exporters write it has about 20,
 * its values' declarations included. Bodies: no more can run (compiler/onnx/onnx_run_body.c).
 * Parts: protobuf joins a message that is given several times, with copies of what it has so
 * far. */
enum { MAX_DEPTH = 64, MAX_MESSAGES = 1 << 22, MAX_BODIES = 1 << 16, MAX_PARTS = 16 };

typedef struct Check {
    LsArena *arena;
    const unsigned char *start;
    const char *wrong;
    uint32_t messages, graphs;  /* so far */
} Check;

/* Says what is wrong, unless it is known. */
__attribute__((format(printf, 2, 3))) static bool fails(Check *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (c->wrong == NULL)
        c->wrong = ls_arena_vprintf(c->arena, fmt, ap);
    va_end(ap);
    return false;
}

static bool count(Check *c, const ProtobufCMessageDescriptor *kind)
{
    c->graphs += kind == &onnx__graph_proto__descriptor;
    if (++c->messages > MAX_MESSAGES)
        return fails(c, "the file has more than %d messages", MAX_MESSAGES);
    if (c->graphs > MAX_BODIES)
        return fails(c, "the file has more than %d graphs, bodies of nodes included", MAX_BODIES);
    return true;
}

static bool check(Check *c, const ProtobufCMessageDescriptor *kind, const unsigned char *p,
                  const unsigned char *end, int depth)
{
    if (depth > MAX_DEPTH)
        return fails(c, "byte %td: messages are nested deeper than %d", p - c->start, MAX_DEPTH);
    if (!count(c, kind))
        return false;
    LsWireField f;
    int parts = 0;
    for (const unsigned char *from = p; ls_wire_next(&p, end, &f); from = p) {
        const ProtobufCFieldDescriptor *d = protobuf_c_message_descriptor_get_field(kind, f.number);
        if (d == NULL || d->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (f.type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
            return fails(c, "byte %td: %s.%s is not a message", from - c->start, kind->short_name,
                         d->name);
        if (d->label != PROTOBUF_C_LABEL_REPEATED && ++parts > MAX_PARTS)
            return fails(c, "byte %td: %s.%s is given again and again", from - c->start,
                         kind->short_name, d->name);
        if (!check(c, d->descriptor, f.data, f.data + f.len, depth + 1))
            return false;
    }
    return p != NULL
           || fails(c, "a field of a %s is malformed or runs past byte %td, where it must end",
                    kind->short_name, end - c->start);
}

/* NULL when the bytes are a well-formed message of the kind, else a description of the error, in
 * the arena. */
static const char *malformed(LsArena *a, const ProtobufCMessageDescriptor *kind,
                             const unsigned char *bytes, size_t n)
{
    Check c = {.arena = a, .start = bytes};
    return check(&c, kind, bytes, bytes + n, 0) ? NULL : c.wrong;
}

static void *take(void *arena, size_t size) { return ls_arena_alloc(arena, 1, size); }

static void give(void *arena, void *p) { (void)arena, (void)p; }

ProtobufCAllocator ls_wire_allocator(LsArena *a)
{
    return (ProtobufCAllocator){take, give, a};
}

Onnx__AttributeProto *ls_wire_attribute(LsArena *a, const ProtobufCMessageUnknownField *u)
{
    LsWireField f;
    if (!ls_wire_content(u, &f)
        || malformed(a, &onnx__attribute_proto__descriptor, f.data, f.len) != NULL)
        return NULL;
    ProtobufCAllocator alloc = ls_wire_allocator(a);
    return onnx__attribute_proto__unpack(&alloc, f.len, f.data);
}

/* stays: the bytes outlive the model, which may point into them. */
static Onnx__ModelProto *unpack(LsCtx *cx, const unsigned char *bytes, size_t n, bool stays)
{
    const char *hint = "the file is truncated, damaged, or not an ONNX model";
    const char *wrong = malformed(cx->arena, &onnx__model_proto__descriptor, bytes, n);
    if (wrong != NULL) {
        ls_error(cx, LS_NOWHERE, LS_E_PARSE, hint, "%s", wrong);
        return NULL;
    }
    ProtobufCAllocator alloc = ls_wire_allocator(cx->arena);
    LsSlim slim;
    bool is_slim = stays && ls_slim(cx->arena, bytes, n, &slim);
    Onnx__ModelProto *m = onnx__model_proto__unpack(&alloc, is_slim ? slim.n : n,
                                                    is_slim ? slim.bytes : bytes);
    if (is_slim && m != NULL && m->graph != NULL)
        ls_slim_restore(&slim, m->graph);
    if (m == NULL)
        ls_error(cx, LS_NOWHERE, LS_E_PARSE, hint, "a field has the wrong kind of value");
    else if (m->graph == NULL)
        ls_error(cx, LS_NOWHERE, LS_E_PARSE, hint, "the file holds no graph");
    return m != NULL && m->graph != NULL ? m : NULL;
}

Onnx__ModelProto *ls_onnx_unpack(LsCtx *cx, const unsigned char *bytes, size_t n)
{
    return unpack(cx, bytes, n, false);
}

static const char *why_unreadable(const struct stat *st)
{
    if (S_ISDIR(st->st_mode))
        return "is a directory";
    return S_ISREG(st->st_mode) ? NULL : "is not a regular file";
}

/* One file, as it was when read. */
struct LsParsed {
    dev_t dev; ino_t ino; off_t size; struct timespec changed;
    Onnx__ModelProto *model;
    const struct LsOnnxEdits *edits;
};

const struct LsOnnxEdits **ls_onnx_edits(LsCtx *cx) { return &cx->parsed->edits; }

static bool same_file(const struct LsParsed *p, const struct stat *st)
{
    return p != NULL && p->dev == st->st_dev && p->ino == st->st_ino && p->size == st->st_size
           && p->changed.tv_sec == st->st_mtim.tv_sec && p->changed.tv_nsec == st->st_mtim.tv_nsec;
}

Onnx__ModelProto *ls_onnx_read(LsCtx *cx, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot open %s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    if (same_file(cx->parsed, &st)) {
        close(fd);
        return cx->parsed->model;
    }
    Onnx__ModelProto *m = NULL;
    const void *map = NULL;
    if (why_unreadable(&st) != NULL)
        ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "%s %s", path, why_unreadable(&st));
    else if (st.st_size == 0)
        ls_error(cx, LS_NOWHERE, LS_E_PARSE, NULL, "%s is empty", path);
    else if ((map = ls_arena_map(cx->arena, fd, 0, (size_t)st.st_size)) == NULL)
        ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot map %s: %s", path, strerror(errno));
    close(fd);
    if (map != NULL)
        m = unpack(cx, map, (size_t)st.st_size, true);
    if (m != NULL) {
        cx->parsed = ls_arena_alloc(cx->arena, 1, sizeof *cx->parsed);
        *cx->parsed = (struct LsParsed){st.st_dev, st.st_ino, st.st_size, st.st_mtim, m, NULL};
    }
    return m;
}
