/* runtime/base/proto_field.c -- see proto_field.h. */
#include "runtime/base/proto_field.h"

#include <string.h>

static bool varint(LsProtoBytes *b, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; b->p < b->end && shift < 64; shift += 7) {
        unsigned char c = *b->p++;
        *v |= (uint64_t)(c & 127) << shift;
        if (c < 128)
            return true;
    }
    return false;
}

bool ls_proto_next(LsProtoBytes *b, LsProtoField *f)
{
    uint64_t n = 0;
    *f = (LsProtoField){.whole = {b->p, b->p}};
    if (!varint(b, &f->tag))
        return false;
    switch (f->tag & 7) {
    case 0:
        if (!varint(b, &f->value))
            return false;
        break;
    case 1: n = 8; break;
    case 2:
        if (!varint(b, &n))
            return false;
        break;
    case 5: n = 4; break;
    default: return false;
    }
    if (n > (uint64_t)(b->end - b->p))
        return false;
    f->held = (LsProtoBytes){b->p, b->p + n};
    b->p += n;
    f->whole.end = b->p;
    return true;
}

size_t ls_proto_size(LsProtoBytes b) { return (size_t)(b.end - b.p); }

bool ls_proto_equals(LsProtoBytes b, const char *text)
{
    size_t n = strlen(text);
    return b.p != NULL && ls_proto_size(b) == n && memcmp(b.p, text, n) == 0;
}

unsigned char *ls_proto_put(unsigned char *to, uint64_t v)
{
    for (; v > 127; v >>= 7)
        *to++ = (unsigned char)(v | 128);
    *to++ = (unsigned char)v;
    return to;
}

unsigned char *ls_proto_put_head(unsigned char *to, uint64_t tag, size_t content)
{
    return ls_proto_put(ls_proto_put(to, tag), content);
}

unsigned char *ls_proto_put_bytes(unsigned char *to, uint64_t tag, const char *text, size_t n)
{
    to = ls_proto_put_head(to, tag, n);
    memcpy(to, text, n);
    return to + n;
}
