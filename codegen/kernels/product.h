/* codegen/kernels/product.h -- what matrices a MATMUL node multiplies. */
#ifndef LS_CODEGEN_PRODUCT_H
#define LS_CODEGEN_PRODUCT_H

#include "codegen/emit/kernel_emit.h"

/* `batch` products c [m][n] = a [m][depth] * b [depth][n]. Rows of a or c that are longer than the
 * other matrices make them end in columns that do not count (codegen/cuda/widen.h); where b has rows
 * of zeros for them, n or depth counts them. Batch axes, outermost first, with the
 * distances of a and b along them, in elements; neighbours that advance alike in both are one axis,
 * and there is none where the batch is only more rows. */
typedef struct LsProduct {
    int64_t m, n, depth, batch;
    int64_t row_a, row_c;   /* elements from one row of a, as it lies, and of c to the next */
    int naxis;
    int64_t dim[LS_MAX_RANK], a[LS_MAX_RANK], b[LS_MAX_RANK];
} LsProduct;

LsProduct ls_product_of(const LsGraph *g, LsNodeId n);

/* Prints NAME_shape, an LsMatmul of runtime/kernels/ls_matmul.h. */
void ls_product_emit_shape(const LsKernelText *k, const LsProduct *p, const LsGemmAttr *at);

#endif
