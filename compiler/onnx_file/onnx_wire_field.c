/* compiler/onnx_file/onnx_wire_field.c -- see the header. */
#include "compiler/onnx_file/onnx_wire_field.h"

static const unsigned char *varint(const unsigned char *p, const unsigned char *end, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (p == end)
            return NULL;
        if (shift < 64)
            *v |= (uint64_t)(*p & 0x7f) << shift;
        if ((*p++ & 0x80) == 0)
            return p;
    }
    return NULL;
}

bool ls_wire_next(const unsigned char **at, const unsigned char *end, LsWireField *f)
{
    const unsigned char *p = *at;
    uint64_t key, len;
    if (p == end)
        return false;
    *at = NULL;
    if ((p = varint(p, end, &key)) == NULL || key >> 3 == 0 || key >> 3 > 0x1fffffff)
        return false;
    f->number = (uint32_t)(key >> 3);
    f->type = key & 7;
    f->data = p;
    switch (f->type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        if ((p = varint(p, end, &len)) == NULL)
            return false;
        f->len = (size_t)(p - f->data);
        break;
    case PROTOBUF_C_WIRE_TYPE_64BIT: f->len = 8; break;
    case PROTOBUF_C_WIRE_TYPE_32BIT: f->len = 4; break;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        if ((p = varint(p, end, &len)) == NULL || len > (uint64_t)(end - p))
            return false;
        f->data = p;
        f->len = (size_t)len;
        break;
    default:                    /* groups: never in ONNX */
        return false;
    }
    if (f->len > (size_t)(end - f->data))
        return false;
    *at = f->data + f->len;
    return true;
}

unsigned char *ls_wire_put_head(unsigned char *to, uint32_t number, size_t len)
{
    *to++ = (unsigned char)(number << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
    for (; len > 127; len >>= 7)
        *to++ = (unsigned char)(len | 128);
    *to++ = (unsigned char)len;
    return to;
}

bool ls_wire_content(const ProtobufCMessageUnknownField *u, LsWireField *f)
{
    uint64_t len;
    const unsigned char *end = u->data + u->len, *p = varint(u->data, end, &len);
    if (u->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED || p == NULL ||
        len != (uint64_t)(end - p))
        return false;
    *f = (LsWireField){u->tag, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, p, (size_t)len};
    return true;
}
