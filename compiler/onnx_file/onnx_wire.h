/* compiler/onnx_file/onnx_wire.h -- unpacks a file's bytes to protobuf-c structures. */
#ifndef LS_COMPILER_ONNX_FILE_ONNX_WIRE_H
#define LS_COMPILER_ONNX_FILE_ONNX_WIRE_H

#include "compiler/ir/diag.h"
#include "compiler/onnx_file/onnx_wire_field.h"
#include "onnx.pb-c.h"

#include <string.h>

/* Reads and unpacks a model into the arena; NULL after a diagnostic. Reading the same unchanged
 * file again gives the same structures: code that changes them must set cx->parsed = NULL. Hostile
 * bytes are refused before protobuf-c sees them: lengths past the end, nesting deeper than any
 * model has. */
Onnx__ModelProto *ls_onnx_read(LsCtx *cx, const char *path);
/* The changes to the model that was read last (compiler/onnx_repair/unmerge_parameters.h); *it is
 * NULL before. */
const struct LsOnnxEdits **ls_onnx_edits(LsCtx *cx);
/* Like ls_onnx_read, for bytes in memory. */
Onnx__ModelProto *ls_onnx_unpack(LsCtx *cx, const unsigned char *bytes, size_t n);

/* An unknown field that holds an attribute, unpacked; NULL: it holds none. */
Onnx__AttributeProto *ls_wire_attribute(LsArena *a, const ProtobufCMessageUnknownField *u);

ProtobufCAllocator ls_wire_allocator(LsArena *a);

/* protobuf-c gives NULL for an absent string. */
static inline const char *ls_text(const char *s) { return s != NULL ? s : ""; }

/* A node's attribute of that name, the first one; NULL: it has none. */
static inline const Onnx__AttributeProto *ls_onnx_attribute(const Onnx__NodeProto *p,
                                                            const char *name)
{
    for (size_t i = 0; i < p->n_attribute; i++)
        if (strcmp(ls_text(p->attribute[i]->name), name) == 0)
            return p->attribute[i];
    return NULL;
}

#endif
