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

/* packed: the codes of that weight, which are made as they are written. bytes NULL: zeros, in the
 * place of values that the program has as codes. */
typedef struct LsOnnxPiece {
    const unsigned char *bytes;
    size_t n;                   /* in the form */
    int widen;                  /* ONNX type of the reals at `bytes`, which the form has as float32;
                                 * 0: the bytes are those of the form */
    const struct LsPackedTensor *packed;
} LsOnnxPiece;
typedef struct LsOnnxForm {     /* the pieces of a file, one behind the other; in the arena or in
                                 * files that it maps */
    LsOnnxPiece *piece; uint32_t npiece, cap_piece;
    int64_t bytes;
    int64_t tail;               /* of them, behind the model: values of adapters that it has not,
                                 * those of further members of an ensemble, and codes of weights,
                                 * each at a multiple of 64 */
    int64_t shift;              /* large tensors' data, and codes, lie at multiples of 64 behind so
                                 * many other bytes */
    LsOnnxSlot *slot; uint32_t nslot;
} LsOnnxForm;

/* Makes a file for inference. Names, functions and dynamic dimensions stay as they are; batch norm
 * and dropout get their inference form; all data lies inside, so that it may have more bytes than
 * the 2 GiB of an ONNX file that others read; every real is a float32. Each tensor that the
 * importer trains has a slot under its name in the graph: initializers, Constant and
 * ConstantOfShape nodes, untied Identities. A weight that the program keeps in few bits
 * (LsPackedTensor.used) has one, and its codes have one under NAME.codes. False after a diagnostic
 * (data missing). */
bool ls_onnx_eval_form(LsCtx *cx, const char *path, const LsImportOptions *o, LsOnnxForm *f);

#endif
