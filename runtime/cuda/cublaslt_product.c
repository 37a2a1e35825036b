/* runtime/cuda/cublaslt_product.c -- see cublaslt_product.h.
 *
 * cuBLASLt's matrices are column-major. A row-major matrix is the transpose of the column-major
 * matrix at the same address, and c = a b becomes c' = b' a': so b is the library's first factor, a
 * its second, and "rows of D" are our columns. */
#include "runtime/cuda/cublaslt_product.h"

#include <stdlib.h>

/* By LsProductType. */
static const struct { cudaDataType_t factor; cublasComputeType_t compute; int bytes; } row[] = {
    {CUDA_R_32F, CUBLAS_COMPUTE_32F, 4}, {CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4},
    {CUDA_R_64F, CUBLAS_COMPUTE_64F, 8}, {CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2},
    {CUDA_R_16F, CUBLAS_COMPUTE_32F, 2}};

int ls_blas_bytes(const LsCudaMatmul *p) { return row[p->type].bytes; }
int ls_blas_result_bytes(const LsCudaMatmul *p) { return p->wide ? 4 : row[p->type].bytes; }

bool ls_blas_ok(const LsCublasLibrary *l, cublasStatus_t s, const char *what, LsError *e)
{
    return s == CUBLAS_STATUS_SUCCESS
        || ls_fail(e, LS_EXIT_DEVICE, "%s: %s: %s", l->name, what, l->GetStatusString(s));
}

static bool set(const LsCublasLibrary *l, cublasLtMatmulDesc_t d,
                cublasLtMatmulDescAttributes_t name, const void *value, size_t size, LsError *e)
{
    return ls_blas_ok(l, l->MatmulDescSetAttribute(d, name, value, size), "describe a product", e);
}

uint32_t ls_blas_epilogue(const LsCudaMatmul *p)
{
    static const uint32_t plain[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU,
                                     CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_DRELU,
                                     CUBLASLT_EPILOGUE_DGELU};
    static const uint32_t with_bias[] = {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS,
                                         CUBLASLT_EPILOGUE_GELU_BIAS};
    static const uint32_t with_aux[] = {0, CUBLASLT_EPILOGUE_RELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX,
                                        CUBLASLT_EPILOGUE_DRELU, CUBLASLT_EPILOGUE_DGELU};
    static const uint32_t with_both[] = {0, CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
                                         CUBLASLT_EPILOGUE_GELU_AUX_BIAS};
    if (p->arg_sum_b >= 0)      /* b is the library's A */
        return CUBLASLT_EPILOGUE_BGRADA;
    if (p->arg_sum_a >= 0)
        return CUBLASLT_EPILOGUE_BGRADB;
    if (p->arg_bias >= 0)
        return p->arg_aux >= 0 ? with_both[p->after] : with_bias[p->after];
    return p->arg_aux >= 0 ? with_aux[p->after] : plain[p->after];
}

bool ls_blas_vectors(const LsCublasLibrary *l, const LsBlasProduct *q, const void *bias,
                     const void *aux, LsError *e)
{
    const LsCudaMatmul *p = q->p;
    bool vector = p->arg_bias >= 0 || p->arg_sum_a >= 0 || p->arg_sum_b >= 0;
    return (!vector || set(l, q->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias, e))
        && (p->arg_aux < 0
            || set(l, q->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux, e));
}

static bool make_desc(const LsCublasLibrary *l, LsBlasProduct *q, LsError *e)
{
    const LsCudaMatmul *p = q->p;
    cudaDataType_t scale = p->type == LS_PRODUCT_F64 ? CUDA_R_64F : CUDA_R_32F;
    int32_t first = p->turn_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    int32_t second = p->turn_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint32_t ep = ls_blas_epilogue(p);
    int64_t ld = ls_product_aux_ld(p->after, p->n);
    int64_t apart = q->batch >= 0 ? ls_blas_apart(p, q->batch) / p->n * ld : 0;
    const void *aligned = (const void *)(uintptr_t)LS_BLAS_ALIGNMENT;
    bool batched_aux = p->arg_aux >= 0 && q->batch >= 0;
    if (!ls_blas_ok(l, l->MatmulDescCreate(&q->desc, row[p->type].compute, scale),
                    "describe a product", e))
        return false;
    return set(l, q->desc, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first, e)
        && set(l, q->desc, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second, e)
        && set(l, q->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &ep, sizeof ep, e)
        && (p->arg_aux < 0
            || set(l, q->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld, e))
        && (!batched_aux
            || set(l, q->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &apart, sizeof apart,
                   e))
        && ls_blas_vectors(l, q, aligned, aligned, e);
}

/* Describes a row-major matrix, rows `ld` elements apart (0: contiguous); with count > 1, a batch
 * with a stride of `apart` elements. */
static bool make_layout(const LsCublasLibrary *l, cudaDataType_t type, int64_t rows, int64_t cols,
                        int64_t ld, int64_t count, int64_t apart, cublasLtMatrixLayout_t *to,
                        LsError *e)
{
    int32_t n = (int32_t)count;
    if (!ls_blas_ok(l, l->MatrixLayoutCreate(to, type, (uint64_t)cols, (uint64_t)rows,
                                             ld > 0 ? ld : cols),
            "describe a matrix", e))
        return false;
    return count == 1
        || (ls_blas_ok(l, l->MatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n,
                                                  sizeof n), "describe a batch", e)
            && ls_blas_ok(l, l->MatrixLayoutSetAttribute(
                         *to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart, sizeof apart),
                  "describe a batch", e));
}

int64_t ls_blas_apart(const LsCudaMatmul *p, int axis)
{
    int64_t apart = p->m * p->n;
    for (int k = p->naxis - 1; k > axis; k--)
        apart *= p->axis[k].count;
    return apart;
}

/* Makes the longest axis the library's batch, which is one call; each step of the other axes is a
 * call. */
static void share_axes(LsBlasProduct *q)
{
    q->batch = -1;
    q->calls = 1;
    for (int k = 0; k < q->p->naxis; k++) {
        q->calls *= q->p->axis[k].count;
        if (q->batch < 0 || q->p->axis[k].count > q->p->axis[q->batch].count)
            q->batch = k;
    }
    if (q->batch >= 0)
        q->calls /= q->p->axis[q->batch].count;
}

bool ls_blas_product_make(const LsCublasLibrary *l, LsBlasProduct *q, LsError *e)
{
    const LsCudaMatmul *p = q->p;
    share_axes(q);
    int64_t count = q->batch >= 0 ? p->axis[q->batch].count : 1;
    int64_t a = q->batch >= 0 ? p->axis[q->batch].a : 0;
    int64_t b = q->batch >= 0 ? p->axis[q->batch].b : 0;
    int64_t c = q->batch >= 0 ? ls_blas_apart(p, q->batch) : 0;
    const cudaDataType_t factor = row[p->type].factor, result = p->wide ? CUDA_R_32F : factor;
    return make_desc(l, q, e)
           && make_layout(l, factor, p->turn_a ? p->k : p->m, p->turn_a ? p->m : p->k, p->row_a,
                          count, a, &q->a, e)
           && make_layout(l, factor, p->turn_b ? p->n : p->k, p->turn_b ? p->k : p->n, 0, count, b,
                          &q->b, e)
           && make_layout(l, result, p->m, p->n, p->row_c, count, c, &q->c, e);
}

bool ls_blas_product_part(const LsCublasLibrary *l, LsBlasProduct *q, LsError *e)
{
    const LsCudaMatmul *of = q->of;
    LsCudaMatmul *alone = malloc(sizeof *alone);
    if (alone == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    *alone = *of;
    alone->after = LS_AFTER_NONE;
    alone->arg_bias = alone->arg_aux = alone->arg_sum_a = alone->arg_sum_b = -1;
    ls_blas_product_free(l, q);
    *q = (LsBlasProduct){.p = alone, .of = of, .alone = alone};
    return true;
}

void ls_blas_product_free(const LsCublasLibrary *l, LsBlasProduct *q)
{
    cublasLtMatrixLayout_t layout[] = {q->a, q->b, q->c};
    for (int k = 0; k < 3; k++)
        if (layout[k] != NULL)
            l->MatrixLayoutDestroy(layout[k]);
    if (q->desc != NULL)
        l->MatmulDescDestroy(q->desc);
    free(q->alone);
}
