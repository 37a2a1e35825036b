/* runtime/base/proto_field.h -- the wire format of protocol buffers, in which ONNX files are
 * written: fields one after the other, each with a tag. Appended bytes continue a message. */
#ifndef LS_RUNTIME_BASE_PROTO_FIELD_H
#define LS_RUNTIME_BASE_PROTO_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The tag of field `number`: a varint, or bytes with their length in front. */
#define LS_PROTO_VARINT(number) ((number) << 3)
#define LS_PROTO_BYTES(number) ((number) << 3 | 2)

enum { LS_PROTO_VARINT_MOST = 10 };      /* bytes */

typedef struct LsProtoBytes { const unsigned char *p, *end; } LsProtoBytes;

/* A field: its tag, the value of a varint, the content of bytes, and where the whole field lies. */
typedef struct LsProtoField { uint64_t tag, value; LsProtoBytes held, whole; } LsProtoField;

/* Takes the next field from b. False at the end, and on malformed bytes. */
bool ls_proto_next(LsProtoBytes *b, LsProtoField *f);
bool ls_proto_equals(LsProtoBytes b, const char *text);
size_t ls_proto_size(LsProtoBytes b);
/* Writes a varint, or a tag and the length of the content that is to follow; returns the end. */
unsigned char *ls_proto_put(unsigned char *to, uint64_t v);
unsigned char *ls_proto_put_head(unsigned char *to, uint64_t tag, size_t content);
/* Writes a whole field of bytes. */
unsigned char *ls_proto_put_bytes(unsigned char *to, uint64_t tag, const char *text, size_t n);

#endif
