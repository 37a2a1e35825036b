/* runtime/cuda/cublaslt_matmul.h -- a matrix product as the program describes it. */
#ifndef LS_CUBLASLT_MATMUL_H
#define LS_CUBLASLT_MATMUL_H

#include "runtime/ls_run.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    LS_PRODUCT_F32,
    LS_PRODUCT_TF32,            /* floats whose factors are rounded to 10 bits of mantissa */
    LS_PRODUCT_F64,
    LS_PRODUCT_BF16,            /* factors of 16 bits, summed in floats */
    LS_PRODUCT_F16,
} LsProductType;

/* The epilogue: applied to alpha * a * b + bias before it is stored. */
typedef enum {
    LS_AFTER_NONE,
    LS_AFTER_RELU,              /* aux, if given: a bit per element, 1 where it is positive */
    LS_AFTER_GELU,              /* tanh form; aux, if given: the value before the GELU */
    LS_AFTER_DRELU,             /* times the gradient of the ReLU whose aux it reads; no bias */
    LS_AFTER_DGELU,
} LsProductAfter;

enum { LS_PRODUCT_AXES = 6, LS_PRODUCT_ARGS = 12 };

/* c [m][n] = after(alpha * a * b + bias), all row-major. turn_a: a lies as [k][m], else [m][k];
 * turn_b: b lies as [n][k], else [k][n]. Batch axes, outermost first: c is contiguous over them; a
 * and b advance by so many elements per step, 0 for the same matrix in each step. */
typedef struct LsCudaMatmul {
    LsProductType type;
    bool wide;                  /* of factors of 16 bits: c has floats; else it is stored as they
                                 * are */
    int64_t m, n, k;
    bool turn_a, turn_b;
    int64_t row_a, row_c;       /* elements from one row to the next, of a as it lies and of c; 0:
                                 * its number of columns. Only without batch and epilogue */
    double alpha;
    int naxis;
    struct { int64_t count, a, b; } axis[LS_PRODUCT_AXES];
    LsProductAfter after;
    /* Indices among the arguments of the step; -1: absent. bias: n elements. aux: see `after`; its
     * rows are ls_product_aux_ld(...) elements (or bits) apart. sum_a: m sums of a over k; sum_b: n
     * sums of b over k. At most one of bias, sum_a and sum_b; sums only for products without batch
     * and epilogue. */
    int arg_a, arg_b, arg_bias, arg_c, arg_aux, arg_sum_a, arg_sum_b, arg_workspace;
    bool plus;                  /* alpha * a * b + plus, which lies as c does, at arg_plus; no
                                 * epilogue but a bias */
    int arg_plus;
    int64_t workspace;          /* bytes at arg_workspace: ls_product_room of the largest workspace
                                 * allowed */
    /* A kernel that does everything but the product, for when the library has no algorithm for
     * both; NULL: there is only the product. */
    void (*behind)(LsRun *run, void *const arg[]);
} LsCudaMatmul;

enum { LS_PRODUCT_ALIGNMENT = 256 };    /* bytes; alignment of the workspace passed to the
                                         * library */

/* Bytes for a workspace in an arena of smaller alignment. */
static inline int64_t ls_product_room(int64_t workspace)
{
    return workspace > 0 ? workspace + LS_PRODUCT_ALIGNMENT - 1 : 0;
}

/* Distance between rows of aux: bits for a ReLU, elements for a GELU. */
static inline int64_t ls_product_aux_ld(LsProductAfter after, int64_t n)
{
    int64_t unit = after == LS_AFTER_RELU || after == LS_AFTER_DRELU ? 128 : 8;
    return (n + unit - 1) / unit * unit;
}

#endif
