/* compiler/onnx_file/onnx_metadata.c -- reads metadata_props, known to the ONNX definitions or not,
 * and the lists and calls that exporters print into them. */
#include "compiler/onnx_file/onnx_metadata.h"

#include "compiler/onnx_file/onnx_wire.h"

#include <ctype.h>
#include <string.h>

static const char field_name[] = "metadata_props";

/* The number of metadata_props in onnx.proto of IR version 10 (ONNX 1.16). 0: the message has no
 * such field. */
static uint32_t field_number(const ProtobufCMessageDescriptor *kind)
{
    if (kind == &onnx__node_proto__descriptor)
        return 9;
    if (kind == &onnx__value_info_proto__descriptor)
        return 4;
    return kind == &onnx__tensor_proto__descriptor || kind == &onnx__graph_proto__descriptor ? 16
                                                                                             : 0;
}

/* An entry in wire form: 1 is the key, 2 the value. */
static const char *entry_value(LsArena *a, const ProtobufCMessageUnknownField *u, const char *key)
{
    LsWireField entry, f;
    const char *value = NULL;
    bool found = false;
    if (!ls_wire_content(u, &entry))
        return NULL;
    const unsigned char *p = entry.data, *end = p + entry.len;
    while (ls_wire_next(&p, end, &f)) {
        if (f.number == 1)
            found = f.len == strlen(key) && memcmp(f.data, key, f.len) == 0;
        if (f.number == 2)
            value = ls_arena_printf(a, "%.*s", (int)(f.len < INT32_MAX ? f.len : 0),
                                    (const char *)f.data);
    }
    return found ? value : NULL;
}

static const char *known_value(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *d,
                               const char *key)
{
    const char *at = (const char *)m;
    size_t n = *(const size_t *)(at + d->quantifier_offset);
    Onnx__StringStringEntryProto *const *list =
        *(Onnx__StringStringEntryProto *const *const *)(at + d->offset);
    for (size_t i = 0; i < n; i++)
        if (strcmp(ls_text(list[i]->key), key) == 0)
            return ls_text(list[i]->value);
    return NULL;
}

const char *ls_onnx_meta(LsArena *a, const ProtobufCMessage *m, const char *key)
{
    const ProtobufCFieldDescriptor *d =
        protobuf_c_message_descriptor_get_field_by_name(m->descriptor, field_name);
    if (d != NULL)
        return known_value(m, d, key);
    uint32_t number = field_number(m->descriptor);
    for (unsigned i = 0; number != 0 && i < m->n_unknown_fields; i++) {
        const char *v = m->unknown_fields[i].tag == number
                            ? entry_value(a, &m->unknown_fields[i], key)
                            : NULL;
        if (v != NULL)
            return v;
    }
    return NULL;
}

const char *ls_meta_item(LsArena *a, const char **at)
{
    const char *from = *at + strcspn(*at, "'\"");
    if (*from == '\0')
        return NULL;
    const char *end = strchr(from + 1, *from);
    if (end == NULL)
        return NULL;
    *at = end + 1;
    return ls_arena_printf(a, "%.*s", (int)(end - from - 1), from + 1);
}

const char *ls_meta_argument(LsArena *a, const char *call, int k)
{
    static const char opening[] = "args = (";
    const char *p = strstr(call, opening);
    if (p == NULL)
        return NULL;
    p += sizeof opening - 1;
    const char *from = p;
    for (int depth = 0;; p++) {
        bool ends = *p == '\0' || (depth == 0 && (*p == ',' || *p == ')'));
        if (ends && k == 0)
            return p > from ? ls_arena_printf(a, "%.*s", (int)(p - from), from) : NULL;
        if (*p == '\0' || (depth == 0 && *p == ')'))
            return NULL;
        if (ends) {
            k--;
            from = p + 1 + (p[1] == ' ');
        }
        depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
    }
}

const char *ls_meta_placeholder(LsArena *a, const char **at)
{
    for (const char *p = *at; (p = strchr(p, '%')) != NULL; p++) {
        size_t n = 1;
        while (isalnum((unsigned char)p[n]) || p[n] == '_')
            n++;
        if (n > 3 && strchr("pbc", p[1]) != NULL && p[2] == '_') {
            *at = p + n;
            return ls_arena_printf(a, "%.*s", (int)n - 1, p + 1);
        }
    }
    return NULL;
}
