/* compiler/onnx_file/onnx_rename.h -- copies nodes of a function or of a body (of If, Loop, Scan)
 * under other names. */
#ifndef LS_COMPILER_ONNX_FILE_ONNX_RENAME_H
#define LS_COMPILER_ONNX_FILE_ONNX_RENAME_H

#include "base/name_ids.h"
#include "compiler/onnx_file/onnx_wire.h"

typedef struct LsRename {
    LsArena *arena;
    LsNames *taken;             /* names of the whole file; new ones join them */
    const char *prefix;         /* of new names: PREFIX/NAME */
    bool closed;                /* a name that is not bound is new: functions see no names from
                                 * outside */
    LsNames inner;              /* bound names, and what they become, by id */
    const char **outer; uint32_t cap;
    /* The attribute of the copy; NULL: left out. NULL: attributes stay. */
    Onnx__AttributeProto *(*attribute)(void *of, Onnx__AttributeProto *);
    void *of;
} LsRename;

void ls_rename_bind(LsRename *r, const char *inner, const char *outer);
/* Binds the name to a new one, PREFIX/NAME, and returns that. */
const char *ls_rename_fresh(LsRename *r, const char *inner);
/* What the name becomes. */
const char *ls_rename_name(LsRename *r, const char *inner);
/* A copy of the node, with the bodies in its attributes; their own names become new ones, too. */
Onnx__NodeProto *ls_rename_node(LsRename *r, const Onnx__NodeProto *node);

#endif
