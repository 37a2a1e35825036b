/* compiler/onnx_file/onnx_reals.h -- the reals of a tensor, read in parts: tensors may be larger
 * than memory, and reals of 16 bits need not be there as floats all at once. */
#ifndef LS_COMPILER_ONNX_FILE_ONNX_REALS_H
#define LS_COMPILER_ONNX_FILE_ONNX_REALS_H

#include "compiler/onnx_file/onnx_tensor.h"

enum { LS_REALS_PART = 4096 };  /* elements */

typedef struct LsReals {
    const LsArena *arena;
    const unsigned char *raw;
    int data_type, bytes;       /* of an element in the file */
    int64_t count;
    int64_t read;               /* elements since memory was given back */
    float part[LS_REALS_PART];
} LsReals;

/* False: damaged, no reals, or the data file does not exist, as for ls_tensor_data. */
bool ls_reals_open(LsReals *r, LsCtx *cx, LsWhere at, LsDataFolder *from,
                   const Onnx__TensorProto *t);
/* The elements from `at` on: *n of them, at least one and at most LS_REALS_PART, until the next
 * call. Memory of what was read is given back from time to time. */
const LsFileReal *ls_reals_from(LsReals *r, int64_t at, int64_t *n);
float ls_reals_at(LsReals *r, int64_t at);
/* Gives the memory back. */
void ls_reals_let_go(LsReals *r);

#endif
