/* runtime/cuda/cublaslt_product.h -- a product in the library's descriptors. */
#ifndef LS_CUBLASLT_PRODUCT_H
#define LS_CUBLASLT_PRODUCT_H

#include "runtime/cuda/cublaslt_library.h"
#include "runtime/cuda/cublaslt_matmul.h"

enum { LS_BLAS_ALIGNMENT = 64 };        /* bytes: of every place in the arena and the state */

typedef struct LsBlasProduct {        /* a product made ready */
    const LsCudaMatmul *p;      /* what the library does: `of`, or `alone` */
    const LsCudaMatmul *of;     /* what the program says: its address is the product's name */
    LsCudaMatmul *alone;        /* the product without what is behind it, which a kernel does; NULL:
                                 * the library does all */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;     /* ours */
    int batch;                  /* axis that is the library's batch; -1: none */
    int64_t calls;              /* steps of all other axes */
    cublasLtMatmulAlgo_t algo;
    bool chosen, ran;
} LsBlasProduct;

int ls_blas_bytes(const LsCudaMatmul *p);               /* of an element */
uint32_t ls_blas_epilogue(const LsCudaMatmul *p);       /* cublasLtEpilogue_t */
/* Elements of c from one step of a batch axis to the next. */
int64_t ls_blas_apart(const LsCudaMatmul *p, int axis);

/* Descriptors of q->p; also after an error they are to be freed. */
bool ls_blas_product_make(const LsCublasLibrary *l, LsBlasProduct *q, LsError *e);
/* From now on the library does the product alone; without descriptors yet. Once for a product. */
bool ls_blas_product_part(const LsCublasLibrary *l, LsBlasProduct *q, LsError *e);
void ls_blas_product_free(const LsCublasLibrary *l, LsBlasProduct *q);
/* Places of vectors that the epilogue reads or writes. While the library chooses they are only
 * some aligned address: the choice is not to depend on the plan. */
bool ls_blas_vectors(const LsCublasLibrary *l, const LsBlasProduct *q, const void *bias,
                     const void *aux, LsError *e);
/* s is success; else an error that says what could not be done. */
bool ls_blas_ok(const LsCublasLibrary *l, cublasStatus_t s, const char *what, LsError *e);

#endif
