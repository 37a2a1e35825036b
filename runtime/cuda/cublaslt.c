/* runtime/cuda/cublaslt.c -- see cublaslt.h.
 *
 * cuBLASLt's matrices lie by columns. A row-major matrix is the transpose of the column-major one in
 * the same place, and c = a b is c' = b' a': so b is its first factor, a its second, and "rows of D"
 * are our columns. */
#include "runtime/cuda/cublaslt.h"

#include "runtime/cuda/cublaslt_choice.h"
#include "runtime/cuda/cublaslt_library.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CANDIDATES = 8,             /* algorithms that are timed */
    ALIGNMENT = 64,             /* bytes: of every place in the arena and the state */
    REDUCTIONS = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE,
                                /* of split sums: in the workspace, added in a fixed order */
};

typedef struct Product {        /* a product made ready */
    const LsCudaMatmul *p;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;     /* ours */
    int batch;                  /* axis that is the library's batch; -1: none */
    int64_t calls;              /* steps of all other axes */
    cublasLtMatmulAlgo_t algo;
    bool chosen;
} Product;

struct LsCublas {
    LsCublasLibrary lib;
    cublasLtHandle_t handle;
    LsChoices choices;
    const LsStopwatch *tune;
    Product *product; int nproduct, cap;
};

static int type_bytes(const LsCudaMatmul *p) { return p->type == LS_PRODUCT_F64 ? 8 : 4; }

/* ---- descriptors ---- */

static bool ok(const LsCublas *b, cublasStatus_t s, const char *what, LsError *e)
{
    return s == CUBLAS_STATUS_SUCCESS
        || ls_fail(e, LS_EXIT_DEVICE, "%s: %s: %s", b->lib.name, what, b->lib.GetStatusString(s));
}

static bool set(const LsCublas *b, cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t name,
                const void *value, size_t size, LsError *e)
{
    return ok(b, b->lib.MatmulDescSetAttribute(d, name, value, size), "describe a product", e);
}

static uint32_t epilogue(const LsCudaMatmul *p)
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

/* Places of vectors that the epilogue reads or writes. While the library chooses they are only
 * some aligned address: the choice is not to depend on the plan. */
static bool set_vectors(const LsCublas *b, const Product *q, const void *bias, const void *aux,
                        LsError *e)
{
    const LsCudaMatmul *p = q->p;
    bool vector = p->arg_bias >= 0 || p->arg_sum_a >= 0 || p->arg_sum_b >= 0;
    return (!vector || set(b, q->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias, e))
        && (p->arg_aux < 0
            || set(b, q->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux, e));
}

static bool make_desc(const LsCublas *b, Product *q, LsError *e)
{
    static const cublasComputeType_t compute[] = {
        CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_64F};
    const LsCudaMatmul *p = q->p;
    cudaDataType_t scale = p->type == LS_PRODUCT_F64 ? CUDA_R_64F : CUDA_R_32F;
    int32_t first = p->turn_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    int32_t second = p->turn_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint32_t ep = epilogue(p);
    int64_t ld = ls_product_aux_ld(p->after, p->n), apart = ld * p->m;
    const void *aligned = (const void *)(uintptr_t)ALIGNMENT;
    bool batched_aux = p->arg_aux >= 0 && q->batch >= 0;
    if (!ok(b, b->lib.MatmulDescCreate(&q->desc, compute[p->type], scale), "describe a product", e))
        return false;
    return set(b, q->desc, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first, e)
        && set(b, q->desc, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second, e)
        && set(b, q->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &ep, sizeof ep, e)
        && (p->arg_aux < 0
            || set(b, q->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld, e))
        && (!batched_aux
            || set(b, q->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &apart, sizeof apart,
                   e))
        && set_vectors(b, q, aligned, aligned, e);
}

/* A dense row-major matrix; with count > 1, one every `apart` elements. */
static bool make_layout(const LsCublas *b, const LsCudaMatmul *p, int64_t rows, int64_t cols,
                        int64_t count, int64_t apart, cublasLtMatrixLayout_t *to, LsError *e)
{
    cudaDataType_t type = p->type == LS_PRODUCT_F64 ? CUDA_R_64F : CUDA_R_32F;
    int32_t n = (int32_t)count;
    if (!ok(b, b->lib.MatrixLayoutCreate(to, type, (uint64_t)cols, (uint64_t)rows, cols),
            "describe a matrix", e))
        return false;
    return count == 1
        || (ok(b, b->lib.MatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n,
                                                  sizeof n), "describe a batch", e)
            && ok(b, b->lib.MatrixLayoutSetAttribute(
                         *to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart, sizeof apart),
                  "describe a batch", e));
}

/* Elements of c from one step of the axis to the next. */
static int64_t c_apart(const LsCudaMatmul *p, int axis)
{
    int64_t apart = p->m * p->n;
    for (int k = p->naxis - 1; k > axis; k--)
        apart *= p->axis[k].count;
    return apart;
}

/* The longest axis is the library's batch, which is one call; the others are calls. */
static void share_axes(Product *q)
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

static bool make_product(const LsCublas *b, Product *q, LsError *e)
{
    const LsCudaMatmul *p = q->p;
    share_axes(q);
    int64_t count = q->batch >= 0 ? p->axis[q->batch].count : 1;
    int64_t a = q->batch >= 0 ? p->axis[q->batch].a : 0, bb = q->batch >= 0 ? p->axis[q->batch].b : 0;
    int64_t c = q->batch >= 0 ? c_apart(p, q->batch) : 0;
    return make_desc(b, q, e)
        && make_layout(b, p, p->turn_a ? p->k : p->m, p->turn_a ? p->m : p->k, count, a, &q->a, e)
        && make_layout(b, p, p->turn_b ? p->n : p->k, p->turn_b ? p->k : p->n, count, bb, &q->b, e)
        && make_layout(b, p, p->m, p->n, count, c, &q->c, e);
}

static void free_product(const LsCublas *b, Product *q)
{
    cublasLtMatrixLayout_t layout[] = {q->a, q->b, q->c};
    for (int k = 0; k < 3; k++)
        if (layout[k] != NULL)
            b->lib.MatrixLayoutDestroy(layout[k]);
    if (q->desc != NULL)
        b->lib.MatmulDescDestroy(q->desc);
}

/* ---- calls ---- */

typedef struct Call {           /* a product with its addresses */
    LsCublas *b;
    Product *q;
    void *const *arg;
    void *stream;
    cublasStatus_t status;
} Call;

/* Element offsets of the matrices of call number `at`. */
static void call_offsets(const Product *q, int64_t at, int64_t offset[3])
{
    const LsCudaMatmul *p = q->p;
    offset[0] = offset[1] = offset[2] = 0;
    for (int k = p->naxis - 1; k >= 0; k--) {
        if (k == q->batch)
            continue;
        int64_t step = at % p->axis[k].count;
        at /= p->axis[k].count;
        offset[0] += step * p->axis[k].a;
        offset[1] += step * p->axis[k].b;
        offset[2] += step * c_apart(p, k);
    }
}

/* Bytes from one matrix of aux to that at element `offset` of c. */
static int64_t aux_bytes(const LsCudaMatmul *p, int64_t offset)
{
    int64_t rows = offset / p->n, ld = ls_product_aux_ld(p->after, p->n);
    bool bits = p->after == LS_AFTER_RELU || p->after == LS_AFTER_DRELU;
    return bits ? rows * ld / 8 : rows * ld * type_bytes(p);
}

static cublasStatus_t call_once(const Call *call, int64_t at)
{
    const Product *q = call->q;
    const LsCudaMatmul *p = q->p;
    const LsCublas *b = call->b;
    const double alpha8 = p->alpha, zero = 0;
    const float alpha4 = (float)p->alpha;
    const void *alpha = p->type == LS_PRODUCT_F64 ? (const void *)&alpha8 : &alpha4;
    int64_t offset[3], bytes = type_bytes(p);
    call_offsets(q, at, offset);
    const char *x = (const char *)call->arg[p->arg_a] + bytes * offset[0];
    const char *y = (const char *)call->arg[p->arg_b] + bytes * offset[1];
    char *z = (char *)call->arg[p->arg_c] + bytes * offset[2];
    if (p->arg_aux >= 0) {
        const char *aux = (const char *)call->arg[p->arg_aux] + aux_bytes(p, offset[2]);
        cublasStatus_t s = b->lib.MatmulDescSetAttribute(
            q->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
        if (s != CUBLAS_STATUS_SUCCESS)
            return s;
    }
    return b->lib.Matmul(b->handle, q->desc, alpha, y, q->b, x, q->a, &zero, z, q->c, z, q->c,
                         &q->algo, p->workspace > 0 ? call->arg[p->arg_workspace] : NULL,
                         (size_t)p->workspace, call->stream);
}

/* All matrices; false: *job says what failed. */
static bool call_all(void *job)
{
    Call *call = job;
    const LsCudaMatmul *p = call->q->p;
    int vector = p->arg_sum_a >= 0 ? p->arg_sum_a : p->arg_sum_b >= 0 ? p->arg_sum_b : p->arg_bias;
    LsError e = {0};
    call->status = CUBLAS_STATUS_INVALID_VALUE;
    if (vector >= 0 && !set_vectors(call->b, call->q, call->arg[vector],
                                    p->arg_aux >= 0 ? call->arg[p->arg_aux] : NULL, &e))
        return false;
    for (int64_t k = 0; k < call->q->calls; k++)
        if ((call->status = call_once(call, k)) != CUBLAS_STATUS_SUCCESS)
            return false;
    return true;
}

/* ---- choosing ---- */

/* Alignment that all matrices of an operand have, bytes. */
static uint32_t alignment(const Product *q, int which)
{
    const LsCudaMatmul *p = q->p;
    uint64_t all = ALIGNMENT;
    for (int k = 0; k < p->naxis; k++) {
        int64_t apart = which == 0 ? p->axis[k].a : which == 1 ? p->axis[k].b : c_apart(p, k);
        all |= (uint64_t)(apart * type_bytes(p));
    }
    return (uint32_t)(all & -all);
}

static bool make_preference(const LsCublas *b, const Product *q, cublasLtMatmulPreference_t *to,
                            LsError *e)
{
    const uint64_t workspace = (uint64_t)q->p->workspace;
    const uint32_t reductions = REDUCTIONS;
    const uint32_t aligned[] = {alignment(q, 1), alignment(q, 0), alignment(q, 2)};
    const struct { cublasLtMatmulPreferenceAttributes_t name; const void *value; size_t size; }
    row[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &aligned[0], sizeof *aligned},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &aligned[1], sizeof *aligned},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &aligned[2], sizeof *aligned},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &aligned[2], sizeof *aligned},
    };
    if (!ok(b, b->lib.MatmulPreferenceCreate(to), "choose an algorithm", e))
        return false;
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (!ok(b, b->lib.MatmulPreferenceSetAttribute(*to, row[k].name, row[k].value, row[k].size),
                "choose an algorithm", e))
            return false;
    return true;
}

static int product_text(const LsCudaMatmul *p, char *text, size_t room)
{
    static const char *const type[] = {"f32", "tf32", "f64"};
    int n = snprintf(text, room, "%s %" PRId64 "x%" PRId64 "x%" PRId64 " %c%c", type[p->type], p->m,
                     p->n, p->k, p->turn_a ? 'T' : 'N', p->turn_b ? 'T' : 'N');
    for (int k = 0; k < p->naxis && n < (int)room; k++)
        n += snprintf(text + n, room - (size_t)n, " %" PRId64 ":%" PRId64 ":%" PRId64,
                      p->axis[k].count, p->axis[k].a, p->axis[k].b);
    return n;
}

static void product_key(const LsCudaMatmul *p, char key[LS_CHOICE_KEY])
{
    int n = product_text(p, key, LS_CHOICE_KEY);
    if (n < LS_CHOICE_KEY)
        snprintf(key + n, LS_CHOICE_KEY - (size_t)n, " after %u in %" PRId64, epilogue(p),
                 p->workspace);
}

/* A choice of an earlier run, if it still holds. */
static bool recall(const LsCublas *b, Product *q, const char *key)
{
    const LsChoice *old = ls_choices_find(&b->choices, key);
    cublasLtMatmulHeuristicResult_t r = {0};
    if (old == NULL || (b->tune != NULL && !old->tuned))
        return false;
    if (b->lib.MatmulAlgoCheck(b->handle, q->desc, q->b, q->a, q->c, q->c, &old->algo, &r)
            != CUBLAS_STATUS_SUCCESS
        || r.workspaceSize > (size_t)q->p->workspace)
        return false;
    q->algo = old->algo;
    return true;
}

/* The fastest of the candidates by the clock, the first of equal ones; -1: none runs. */
static int fastest(Call *call, const cublasLtMatmulHeuristicResult_t *r, int n)
{
    const LsStopwatch *w = call->b->tune;
    double least = 0;
    int best = -1;
    for (int k = 0; k < n; k++) {
        if (r[k].state != CUBLAS_STATUS_SUCCESS)
            continue;
        call->q->algo = r[k].algo;
        double ns = w->time(w->self, call_all, call);
        if (ns >= 0 && (best < 0 || ns < least)) {
            least = ns;
            best = k;
        }
    }
    return best;
}

static bool ask(Call *call, LsError *e)
{
    LsCublas *b = call->b;
    Product *q = call->q;
    cublasLtMatmulHeuristicResult_t r[CANDIDATES] = {0};
    cublasLtMatmulPreference_t pref = NULL;
    int n = 0, best = -1;
    char text[LS_CHOICE_KEY];
    bool made = make_preference(b, q, &pref, e);
    cublasStatus_t s = !made ? CUBLAS_STATUS_SUCCESS
                     : b->lib.MatmulAlgoGetHeuristic(b->handle, q->desc, q->b, q->a, q->c, q->c,
                                                     pref, CANDIDATES, r, &n);
    if (pref != NULL)
        b->lib.MatmulPreferenceDestroy(pref);
    if (!made)
        return false;
    if (s == CUBLAS_STATUS_SUCCESS && b->tune != NULL)
        best = fastest(call, r, n);
    for (int k = 0; k < n && best < 0; k++)
        if (r[k].state == CUBLAS_STATUS_SUCCESS)
            best = k;
    if (best >= 0) {
        q->algo = r[best].algo;
        return true;
    }
    product_text(q->p, text, sizeof text);
    return ls_fail(e, LS_EXIT_DEVICE,
                   "%s has no algorithm for a product %s (epilogue %u) within %" PRId64 " bytes: %s%s",
                   b->lib.name, text, epilogue(q->p), q->p->workspace,
                   s == CUBLAS_STATUS_SUCCESS ? "none is deterministic" : b->lib.GetStatusString(s),
                   epilogue(q->p) > CUBLASLT_EPILOGUE_BIAS ? "; compile with --no-epilogues" : "");
}

static bool choose(Call *call, LsError *e)
{
    LsCublas *b = call->b;
    LsChoice choice = {.tuned = b->tune != NULL};
    product_key(call->q->p, choice.key);
    if (recall(b, call->q, choice.key))
        return true;
    if (!ask(call, e))
        return false;
    choice.algo = call->q->algo;
    ls_choices_put(&b->choices, &choice);
    return true;
}

/* ---- the whole ---- */

bool ls_cublas_open(LsCublas **to, const LsCublasSetup *setup, LsError *e)
{
    LsCublas *b = calloc(1, sizeof *b);
    if (b == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    if (!ls_cublas_library_open(&b->lib, setup->library, e)) {
        free(b);
        return false;
    }
    cublasStatus_t s = b->lib.Create(&b->handle);
    if (s != CUBLAS_STATUS_SUCCESS) {
        ls_fail(e, LS_EXIT_DEVICE, "%s does not start: %s (is there a device, and a driver as new "
                "as the library?)", b->lib.name, b->lib.GetStatusString(s));
        ls_cublas_library_close(&b->lib);
        free(b);
        return false;
    }
    ls_choices_open(&b->choices, setup->cache, b->lib.name, setup->device);
    b->tune = setup->tune;
    *to = b;
    return true;
}

void ls_cublas_close(LsCublas *b)
{
    if (b == NULL)
        return;
    ls_choices_close(&b->choices);
    for (int k = 0; k < b->nproduct; k++)
        free_product(b, &b->product[k]);
    free(b->product);
    b->lib.Destroy(b->handle);
    ls_cublas_library_close(&b->lib);
    free(b);
}

void ls_cublas_tune(LsCublas *b, const LsStopwatch *watch) { b->tune = watch; }

const char *ls_cublas_name(const LsCublas *b) { return b->lib.name; }

/* The product of that description, made when it is asked for first; NULL after an error. */
static Product *product_of(LsCublas *b, const LsCudaMatmul *p, LsError *e)
{
    for (int k = 0; k < b->nproduct; k++)
        if (b->product[k].p == p)
            return &b->product[k];
    if (b->nproduct == b->cap) {
        int cap = b->cap > 0 ? 2 * b->cap : 64;
        Product *all = realloc(b->product, (size_t)cap * sizeof *all);
        if (all == NULL) {
            ls_fail(e, LS_EXIT_FAIL, "out of memory");
            return NULL;
        }
        b->product = all;
        b->cap = cap;
    }
    Product *q = &b->product[b->nproduct++];
    *q = (Product){.p = p};
    return make_product(b, q, e) ? q : NULL;
}

bool ls_cublas_multiply(LsCublas *b, const LsCudaMatmul *p, void *const arg[], void *stream,
                        LsError *e)
{
    Call call = {.b = b, .q = product_of(b, p, e), .arg = arg, .stream = stream};
    char text[LS_CHOICE_KEY];
    if (call.q == NULL)
        return false;
    if (!call.q->chosen && !(call.q->chosen = choose(&call, e)))
        return false;
    if (call_all(&call))
        return true;
    product_text(p, text, sizeof text);
    return ls_fail(e, LS_EXIT_DEVICE, "%s: a product %s: %s", b->lib.name, text,
                   b->lib.GetStatusString(call.status));
}
