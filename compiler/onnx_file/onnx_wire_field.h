/* compiler/onnx_file/onnx_wire_field.h -- iterates over the fields of a message in wire form. */
#ifndef LS_COMPILER_ONNX_FILE_ONNX_WIRE_FIELD_H
#define LS_COMPILER_ONNX_FILE_ONNX_WIRE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <protobuf-c/protobuf-c.h>

/* One field of a message in wire form. */
typedef struct LsWireField {
    uint32_t number, type;          /* type: protobuf's wire type */
    const unsigned char *data;      /* type 2: the content; others: the bytes of the value */
    size_t len;
} LsWireField;
/* Takes the next field from [*at, end); false at the end or, with *at = NULL, on malformed bytes.
 */
bool ls_wire_next(const unsigned char **at, const unsigned char *end, LsWireField *f);

/* Writes key and length of a message or text whose number is below 16, at most LS_WIRE_HEAD bytes;
 * returns their end. */
enum { LS_WIRE_HEAD = 15 };
unsigned char *ls_wire_put_head(unsigned char *to, uint32_t number, size_t len);

/* The content of an unknown field that is a message or text; false: it is neither. */
bool ls_wire_content(const ProtobufCMessageUnknownField *u, LsWireField *f);

#endif
