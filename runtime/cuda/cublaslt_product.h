/* runtime/cuda/cublaslt_product.h -- a product as the library's descriptors. */
#ifndef LS_CUBLASLT_PRODUCT_H
#define LS_CUBLASLT_PRODUCT_H

#include "runtime/cuda/cublaslt_library.h"
#include "runtime/cuda/cublaslt_matmul.h"

enum { LS_BLAS_ALIGNMENT = 64 };        /* bytes; alignment of every tensor in the arena and the
                                         * state */

typedef struct LsBlasProduct {        /* a prepared product */
    const LsCudaMatmul *p;      /* the library's part: `of`, or `alone` */
    const LsCudaMatmul *of;     /* the program's product: its address identifies it */
    LsCudaMatmul *alone;        /* the product without its epilogue, which a kernel does; NULL: the
                                 * library does everything */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;     /* of the program's own a, b, c */
    int batch;                  /* axis used as the library's batch; -1: none */
    int64_t calls;              /* calls of the library: steps of all other axes */
    cublasLtMatmulAlgo_t algo;
    bool chosen, ran;
} LsBlasProduct;

int ls_blas_bytes(const LsCudaMatmul *p);               /* of an element of a factor */
int ls_blas_result_bytes(const LsCudaMatmul *p);        /* of an element of c */
uint32_t ls_blas_epilogue(const LsCudaMatmul *p);       /* cublasLtEpilogue_t */
/* Distance in elements of c between steps of a batch axis. */
int64_t ls_blas_apart(const LsCudaMatmul *p, int axis);

/* Makes the descriptors of q->p; the caller frees them after an error, too. */
bool ls_blas_product_make(const LsCublasLibrary *l, LsBlasProduct *q, LsError *e);
/* From now on the library does only the product, `alone`; descriptors are not made yet. At most
 * once per product. */
bool ls_blas_product_part(const LsCublasLibrary *l, LsBlasProduct *q, LsError *e);
void ls_blas_product_free(const LsCublasLibrary *l, LsBlasProduct *q);
/* Sets the vectors that the epilogue reads or writes. While the library chooses an algorithm, they
 * are some aligned address, so that the choice does not depend on the plan. */
bool ls_blas_vectors(const LsCublasLibrary *l, const LsBlasProduct *q, const void *bias,
                     const void *aux, LsError *e);
/* True if s is success; else sets an error that says which action failed. */
bool ls_blas_ok(const LsCublasLibrary *l, cublasStatus_t s, const char *what, LsError *e);

#endif
