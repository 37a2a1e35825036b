/* compiler/onnx/onnx_wire_field.h -- iterates over the fields of a message in wire form. */
#ifndef LS_COMPILER_ONNX_ONNX_WIRE_FIELD_H
#define LS_COMPILER_ONNX_ONNX_WIRE_FIELD_H

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

/* The content of an unknown field that is a message or text; false: it is neither. */
bool ls_wire_content(const ProtobufCMessageUnknownField *u, LsWireField *f);

#endif
