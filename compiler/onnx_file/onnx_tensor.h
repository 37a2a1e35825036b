/* compiler/onnx_file/onnx_tensor.h -- converts a TensorProto to data of a value. */
#ifndef LS_COMPILER_ONNX_FILE_ONNX_TENSOR_H
#define LS_COMPILER_ONNX_FILE_ONNX_TENSOR_H

#include "compiler/ir/diag.h"
#include "compiler/packed/packed_tensor.h"
#include "onnx.pb-c.h"

/* Element types newer than the distribution's definitions have numbers above BFLOAT16. */
const char *ls_onnx_type_name(int data_type);
bool ls_onnx_type_is_float(int data_type);
/* The IR type for values of this ONNX type; false: strings, complex numbers, 8-bit floats. */
bool ls_onnx_type(int data_type, LsType *type);

/* Shape and type; false after a diagnostic (rank, negative dims, more elements than fit, type). */
bool ls_tensor_shape(LsCtx *cx, LsWhere at, const Onnx__TensorProto *t, LsShape *shape,
                     LsType *type);

/* The folders that may hold external data, and the missing files. */
typedef struct LsDataFolder {
    const char *dir;            /* the model's: data files must lie inside it, */
    const char *home;           /* or in this one, the folder of the model file with its links
                                 * resolved; NULL: not known */
    uint32_t nmissing;          /* tensors whose file does not exist; the first of them */
    const char *tensor, *file;
} LsDataFolder;

/* The elements, converted to the form of LsValue.data; NULL after a diagnostic, or without one when
 * the tensor's file does not exist (counted in `from`; `from` NULL: external data is an error). An
 * empty tensor gives a non-NULL pointer to no elements. */
const void *ls_tensor_data(LsCtx *cx, LsWhere at, LsDataFolder *from, const Onnx__TensorProto *t);

/* A real at any address: data in files are not aligned. */
typedef float LsFileReal __attribute__((aligned(1)));
/* The same for reals, without a copy of float32 data that lie in a file: ls_arena_let_go gives
 * their memory back. */
const LsFileReal *ls_tensor_reals(LsCtx *cx, LsWhere at, LsDataFolder *from,
                                  const Onnx__TensorProto *t);
/* Whether the tensor's data are bytes, of this file or of another; else they are typed fields. */
bool ls_tensor_is_raw(const Onnx__TensorProto *t);
/* These bytes; NULL as for ls_tensor_data. Of large data in another file none is read. */
const unsigned char *ls_tensor_raw(LsCtx *cx, LsWhere at, LsDataFolder *from,
                                   const Onnx__TensorProto *t);
int ls_onnx_type_bytes(int data_type);  /* of an element of raw data */
/* Converts reals of that type. */
void ls_raw_to_floats(int data_type, const unsigned char *raw, size_t count, float *to);

/* Where the reals of t lie, without a copy of float32 and numbers of 16 bits. As ls_tensor_data. */
bool ls_tensor_stored(LsCtx *cx, LsWhere at, LsDataFolder *from, const Onnx__TensorProto *t,
                      LsStoredReals *r);
/* Makes t float32 with raw data of so many bytes that are nowhere. */
void ls_tensor_hollow(Onnx__TensorProto *t, size_t bytes);

/* Both change t in place. ls_tensor_to_float: to float32 in raw_data, inside the file.
 * ls_tensor_embed: brings the bytes of other types inside. False after a diagnostic or when the
 * tensor's file does not exist. */
bool ls_tensor_to_float(LsCtx *cx, LsWhere at, LsDataFolder *from, Onnx__TensorProto *t);
bool ls_tensor_embed(LsCtx *cx, LsWhere at, LsDataFolder *from, Onnx__TensorProto *t);

/* Checks that the tensor's data exist and have the right length, without reading them. False after
 * a diagnostic, or when the tensor's file does not exist (counted in `from`). */
bool ls_tensor_check(LsCtx *cx, LsWhere at, LsDataFolder *from, const Onnx__TensorProto *t);

/* Raw bytes of a tensor whose data lies in another file (compiler/onnx_file/onnx_external.c). */
const unsigned char *ls_external_data(LsCtx *cx, LsWhere at, LsDataFolder *from,
                                      const Onnx__TensorProto *t, size_t bytes);
bool ls_external_check(LsCtx *cx, LsWhere at, LsDataFolder *from, const Onnx__TensorProto *t,
                       size_t bytes);

#endif
