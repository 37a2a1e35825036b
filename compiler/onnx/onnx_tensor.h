/* compiler/onnx/onnx_tensor.h -- TensorProto to data of a value. */
#ifndef LS_COMPILER_ONNX_ONNX_TENSOR_H
#define LS_COMPILER_ONNX_ONNX_TENSOR_H

#include "compiler/ir/diag.h"
#include "onnx.pb-c.h"

/* Newer element types than the distribution's definitions know have numbers above BFLOAT16. */
const char *ls_onnx_type_name(int data_type);
bool ls_onnx_type_is_float(int data_type);
/* The type that values of this ONNX type have here; false: strings, complex numbers, 8-bit floats.
 */
bool ls_onnx_type(int data_type, LsType *type);

/* Shape and type; false after a diagnostic (rank, negative dims, more elements than fit, type). */
bool ls_tensor_shape(LsCtx *cx, LsWhere at, const Onnx__TensorProto *t, LsShape *shape,
                     LsType *type);

/* Where external data is looked for, and what was not found there. */
typedef struct LsDataFolder {
    const char *dir;            /* the model's: data files must lie inside it, */
    const char *home;           /* or where the links of the model file end; NULL: not known */
    uint32_t nmissing;          /* tensors whose file does not exist; the first of them */
    const char *tensor, *file;
} LsDataFolder;

/* The elements, converted as LsValue.data wants them; NULL after a diagnostic, or without one when
 * the tensor's file does not exist (counted in `from`; NULL: external data is an error). An empty
 * tensor gives a pointer to nothing. */
const void *ls_tensor_data(LsCtx *cx, LsWhere at, LsDataFolder *from, const Onnx__TensorProto *t);

/* In place: float32 in raw_data, inside the file; or, for other types, the file's bytes brought
 * inside. False after a diagnostic or when the tensor's file does not exist. */
bool ls_tensor_to_float(LsCtx *cx, LsWhere at, LsDataFolder *from, Onnx__TensorProto *t);
bool ls_tensor_embed(LsCtx *cx, LsWhere at, LsDataFolder *from, Onnx__TensorProto *t);

/* The tensor's data are there, and as long as they should be; they are not read. False after a
 * diagnostic, or when the tensor's file does not exist (counted in `from`). */
bool ls_tensor_check(LsCtx *cx, LsWhere at, LsDataFolder *from, const Onnx__TensorProto *t);

/* Raw bytes of a tensor whose data lies in another file (compiler/onnx/onnx_external.c). */
const unsigned char *ls_external_data(LsCtx *cx, LsWhere at, LsDataFolder *from,
                                      const Onnx__TensorProto *t, size_t bytes);
bool ls_external_check(LsCtx *cx, LsWhere at, LsDataFolder *from, const Onnx__TensorProto *t,
                       size_t bytes);

#endif
