/* runtime/data/npy.h -- NumPy's array files: NPY versions 1 and 2. */
#ifndef LS_RUNTIME_DATA_NPY_H
#define LS_RUNTIME_DATA_NPY_H

#include "runtime/base/file.h"
#include "runtime/ls_program.h"

typedef enum {
    LS_F32,
    LS_F64,
    LS_F16,
    LS_BF16,                    /* descr '<V2': the form in which ml_dtypes' bfloat16 is stored */
    LS_I8,
    LS_U8,
    LS_I16,
    LS_U16,
    LS_I32,
    LS_U32,
    LS_I64,
    LS_B8
} LsElement;

/* Values in a file, row-major, possibly unaligned. */
typedef struct LsArray {
    const unsigned char *data;
    LsElement type;
    bool swap;                  /* the byte order differs from this machine's */
    int rank;
    int64_t dim[LS_TENSOR_RANK], count;     /* count: elements */
} LsArray;

/* The element of a program's type, stored in full. */
LsElement ls_element_of(LsDataType type, int real_bytes);
int64_t ls_element_bytes(LsElement type);
bool ls_element_is_float(LsElement type);
const char *ls_element_name(LsElement type);                /* "float32" */
double ls_array_real(const LsArray *a, int64_t i);
/* The same for n elements from element i on, as float32, stored `step` elements apart. */
void ls_array_floats(const LsArray *a, int64_t i, int64_t n, float *to, int64_t step);
int64_t ls_array_int(const LsArray *a, int64_t i);          /* floats are truncated */

/* Reads an NPY file of n bytes; `what` names it in errors. The array points into data. */
bool ls_npy_read(LsArray *a, const unsigned char *data, size_t n, const char *what, LsError *e);

/* The same for either order; *fortran: the first axis runs fastest. */
bool ls_npy_read_order(LsArray *a, const unsigned char *data, size_t n, const char *what,
                       bool *fortran, LsError *e);

/* Writes the version 1.0 header of an array; returns its bytes. */
size_t ls_npy_header(char text[512], LsElement type, int rank, const int64_t *dim);

#endif
