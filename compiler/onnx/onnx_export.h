/* compiler/onnx/onnx_export.h -- the evaluation form of a model file, as bytes with patchable
 * weights. */
#ifndef LS_COMPILER_ONNX_ONNX_EXPORT_H
#define LS_COMPILER_ONNX_ONNX_EXPORT_H

#include "compiler/ir/diag.h"
#include "compiler/onnx/import_options.h"

/* Where the float32 data of an initializer lies in the file: row-major, little-endian. */
typedef struct LsOnnxSlot {
    const char *name;
    int64_t offset, bytes;
    int64_t further;            /* where the values of an ensemble's members 1, 2, ... lie, one
                                 * behind the other; 0: all members begin with these */
} LsOnnxSlot;

typedef struct LsOnnxPiece { const unsigned char *bytes; size_t n; } LsOnnxPiece;
typedef struct LsOnnxForm {     /* the pieces of a file, one behind the other; in the arena or in
                                 * files that it maps */
    LsOnnxPiece *piece; uint32_t npiece, cap_piece;
    int64_t bytes;
    int64_t tail;               /* of them, behind the model: values of adapters that it has not,
                                 * and those of further members of an ensemble */
    LsOnnxSlot *slot; uint32_t nslot;
} LsOnnxForm;

/* Makes a file for inference. Names, functions and dynamic dimensions stay as they are; batch norm
 * and dropout get their inference form; all data lies inside, so that it may have more bytes than
 * the 2 GiB of an ONNX file that others read; every real is a float32. Each tensor that the
 * importer trains has a slot under its name in the graph: initializers, Constant and
 * ConstantOfShape nodes, untied Identities. False after a diagnostic (data missing). */
bool ls_onnx_eval_form(LsCtx *cx, const char *path, const LsImportOptions *o, LsOnnxForm *f);
/* Writes the file, without taking the memory of its data. False after a diagnostic. */
bool ls_onnx_form_write(LsCtx *cx, const LsOnnxForm *f, const char *path);

#endif
