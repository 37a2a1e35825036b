/* compiler/onnx/onnx_export.h -- the evaluation form of a model file, as bytes with patchable
 * weights. */
#ifndef LS_COMPILER_ONNX_ONNX_EXPORT_H
#define LS_COMPILER_ONNX_ONNX_EXPORT_H

#include "compiler/ir/diag.h"
#include "compiler/onnx/import_options.h"

/* Where the float32 data of an initializer lies in the file: row-major, little-endian. */
typedef struct LsOnnxSlot { const char *name; int64_t offset, bytes; } LsOnnxSlot;

/* Builds a file for inference. Names, functions and dynamic dimensions stay as they are; batch norm
 * and dropout get their inference form; all data lies inside; every real is a float32. Each tensor
 * that the importer trains has a slot under its name in the graph: initializers, Constant and
 * ConstantOfShape nodes, untied Identities. bytes and slots live in the arena. False after a
 * diagnostic (data missing, more than 2 GiB). */
bool ls_onnx_eval_model(LsCtx *cx, const char *path, const LsImportOptions *o,
                        unsigned char **bytes, size_t *n, LsOnnxSlot **slot, uint32_t *nslot);

#endif
