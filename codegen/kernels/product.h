/* codegen/kernels/product.h -- the matrices that a MATMUL node multiplies. */
#ifndef LS_CODEGEN_PRODUCT_H
#define LS_CODEGEN_PRODUCT_H

#include "codegen/emit/kernel_emit.h"

/* `batch` products c [m][n] = a [m][depth] * b [depth][n]. Rows of a or c may end in padding
 * columns (codegen/cuda/pad_classes.h); if b has rows of zeros for them, n or depth counts them.
 * Batch axes come outermost first, with the strides of a and b along them, in elements. Neighbours
 * that advance alike in both are one axis, and a batch that only adds rows to a has no axis. */
typedef struct LsProduct {
    int64_t m, n, depth, batch;
    int64_t row_a, row_c;   /* elements from one row to the next, of a as stored and of c */
    int naxis;
    int64_t dim[LS_MAX_RANK], a[LS_MAX_RANK], b[LS_MAX_RANK];
} LsProduct;

LsProduct ls_product_of(const LsGraph *g, LsNodeId n);

/* Prints NAME_shape, an LsMatmul of runtime/kernels/ls_matmul.h. */
void ls_product_emit_shape(const LsKernelText *k, const LsProduct *p, const LsGemmAttr *at);

#endif
