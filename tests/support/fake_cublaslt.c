/* tests/support/fake_cublaslt.c -- a library that takes the place of libcublasLt: the same
 * functions, products computed on the CPU from what the descriptors say, each sum in double
 * precision.
 *
 * It checks callers against the documentation, perhaps more strictly than the real library: types,
 * sizes and leading dimensions agree; vectors and auxiliary matrices are named and laid out as the
 * epilogue needs them; matrices lie as aligned as the heuristics were promised; the workspace
 * begins at a multiple of 256 bytes and is as large as the algorithm said (and is filled with
 * garbage); algorithms come from the heuristics for exactly this product, and have run before they
 * are recorded. fake_report counts. In the environment, FAKE_CUBLASLT_VERSION is the version that
 * it reports; FAKE_CUBLASLT_WITHOUT lists epilogues without algorithms, "6,36" or "all" except the
 * plain epilogue; FAKE_CUBLASLT_STOPS lists epilogues that fail when they run. */
#include "tests/support/fake_stream.h"

#include <cublasLt.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/kernels/ls_kernel.h"  /* rounding to 16 bits */

enum { MAGIC = 0x15fa4e, ALGORITHMS = 4096, WORKSPACE_ALIGNMENT = 256 };

typedef struct FakeReport { int live, asked, checked, products; } FakeReport;
static FakeReport report;
FakeReport *fake_report(void);
FakeReport *fake_report(void) { return &report; }

typedef struct Layout {
    cudaDataType_t type;
    uint64_t rows, cols;
    int64_t ld, apart;
    int32_t count;
} Layout;

typedef struct Desc {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    int32_t turn[2];
    uint32_t epilogue;
    void *bias, *aux;
    int64_t aux_ld, aux_apart;
} Desc;

typedef struct Preference { uint64_t workspace; uint32_t reductions, aligned[4]; } Preference;

size_t cublasLtGetVersion(void)
{
    const char *v = getenv("FAKE_CUBLASLT_VERSION");
    return v != NULL ? (size_t)atoi(v) : 130100;
}

const char *cublasLtGetStatusString(cublasStatus_t s)
{
    return s == CUBLAS_STATUS_SUCCESS ? "success"
         : s == CUBLAS_STATUS_INVALID_VALUE ? "invalid value" : "not supported";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
    report.live++;
    *h = malloc(1);
    return getenv("FAKE_CUBLASLT_NO_DEVICE") ? CUBLAS_STATUS_NOT_INITIALIZED
                                             : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t drop(void *p)
{
    report.live--;
    free(p);
    return CUBLAS_STATUS_SUCCESS;
}

static void *made(size_t size)
{
    report.live++;
    return calloc(1, size);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h) { return drop(h); }
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { return drop(d); }
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) { return drop(l); }
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) { return drop(p); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *to, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    Desc *d = made(sizeof *d);
    *d = (Desc){.compute = compute, .scale = scale, .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    *to = (cublasLtMatmulDesc_t)d;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t take(void *to, size_t want, const void *from, size_t size)
{
    if (want != size)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, from, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t size)
{
    Desc *d = (Desc *)desc;
    switch ((int)name) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return take(&d->turn[0], 4, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB: return take(&d->turn[1], 4, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return take(&d->epilogue, 4, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return take(&d->bias, 8, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return take(&d->aux, 8, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return take(&d->aux_ld, 8, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
        return take(&d->aux_apart, 8, value, size);
    default: return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *to, cudaDataType_t type,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    Layout *l = made(sizeof *l);
    *l = (Layout){.type = type, .rows = rows, .cols = cols, .ld = ld, .count = 1};
    *to = (cublasLtMatrixLayout_t)l;
    return ld < (int64_t)rows ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t name,
                                                const void *value, size_t size)
{
    Layout *l = (Layout *)layout;
    switch ((int)name) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return take(&l->count, 4, value, size);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return take(&l->apart, 8, value, size);
    default: return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *to)
{
    Preference *p = made(sizeof *p);
    *p =
        (Preference){.reductions = CUBLASLT_REDUCTION_SCHEME_MASK, .aligned = {256, 256, 256, 256}};
    *to = (cublasLtMatmulPreference_t)p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *value, size_t size)
{
    Preference *p = (Preference *)pref;
    switch ((int)name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return take(&p->workspace, 8, value, size);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return take(&p->reductions, 4, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return take(&p->aligned[0], 4, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return take(&p->aligned[1], 4, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return take(&p->aligned[2], 4, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return take(&p->aligned[3], 4, value, size);
    default: return CUBLAS_STATUS_INVALID_VALUE;
    }
}

/* ---- checks of a product ---- */
static bool types_agree(const Desc *d, const Layout *a, const Layout *b, const Layout *out)
{
    bool wide = d->compute == CUBLAS_COMPUTE_64F;
    cudaDataType_t type = wide ? CUDA_R_64F : CUDA_R_32F;
    if (a->type == CUDA_R_16BF || a->type == CUDA_R_16F)
        return d->compute == CUBLAS_COMPUTE_32F && d->scale == CUDA_R_32F && b->type == a->type
            && (out->type == a->type || out->type == CUDA_R_32F);
    return (wide || d->compute == CUBLAS_COMPUTE_32F || d->compute == CUBLAS_COMPUTE_32F_FAST_TF32)
        && d->scale == type && a->type == type && b->type == type && out->type == type;
}

static bool sizes_agree(const Desc *d, const Layout *a, const Layout *b, const Layout *out)
{
    bool ta = d->turn[0] == CUBLAS_OP_T, tb = d->turn[1] == CUBLAS_OP_T;
    bool batch = out->count > 1;
    return (ta ? a->cols : a->rows) == out->rows && (tb ? b->rows : b->cols) == out->cols
        && (ta ? a->rows : a->cols) == (tb ? b->cols : b->rows) && a->count == out->count
        && b->count == out->count && out->count > 0
        && (!batch || out->apart >= out->ld * (int64_t)out->cols);
}

static bool is_power_of_two(uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }

/* The epilogue is one of those, and has the vectors and the matrix that it works on. */
static bool epilogue_fits(const Desc *d, const Layout *out)
{
    static const uint32_t known[] = {
        CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_AUX,
        CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
        CUBLASLT_EPILOGUE_DRELU, CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_AUX,
        CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU,
        CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB};
    const uint32_t e = d->epilogue;
    bool is = false, sums = e == CUBLASLT_EPILOGUE_BGRADA || e == CUBLASLT_EPILOGUE_BGRADB;
    bool aux = !sums && (e & 128), mask = (e & ~128u & ~4u) == 2 || e == CUBLASLT_EPILOGUE_DRELU;
    int64_t unit = mask ? 128 : 8;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        is |= e == known[k];
    bool vector = sums || (e & CUBLASLT_EPILOGUE_BIAS);
    return is && (!vector || (d->bias != NULL && (uintptr_t)d->bias % 16 == 0))
        && (!sums || out->count == 1)
        && (!aux || (d->aux != NULL && (uintptr_t)d->aux % 16 == 0 && d->aux_ld % unit == 0
                     && d->aux_ld >= (int64_t)out->rows
                     && (out->count == 1 || (d->aux_apart % unit == 0
                                             && d->aux_apart >= d->aux_ld * (int64_t)out->cols))));
}

static bool possible(const Desc *d, const Layout *a, const Layout *b, const Layout *c,
                     const Layout *out)
{
    return types_agree(d, a, b, out) && sizes_agree(d, a, b, out) && epilogue_fits(d, out)
        && c->rows == out->rows && c->cols == out->cols && c->count == out->count;
}

static uint64_t mixed(uint64_t h, uint64_t v) { return (h ^ v) * UINT64_C(0x100000001b3); }

/* The epilogue is in the list of that name in the environment. */
static bool is_listed(const char *name, uint32_t epilogue)
{
    const char *at = getenv(name);
    if (at != NULL && strcmp(at, "all") == 0)
        return epilogue != CUBLASLT_EPILOGUE_DEFAULT;
    for (; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL)
        if ((uint32_t)atoi(at) == epilogue)
            return true;
    return false;
}

/* Everything that decides the choice of an algorithm. */
static uint64_t name_of(const Desc *d, const Layout *a, const Layout *b, const Layout *out)
{
    const Layout *of[] = {a, b, out};
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    const uint64_t desc[] = {(uint64_t)d->compute, (uint64_t)d->turn[0], (uint64_t)d->turn[1],
                             d->epilogue, (uint64_t)d->aux_ld};
    for (size_t k = 0; k < sizeof desc / sizeof *desc; k++)
        h = mixed(h, desc[k]);
    for (int k = 0; k < 3; k++)
        h = mixed(mixed(mixed(mixed(h, of[k]->rows), of[k]->cols), (uint64_t)of[k]->count),
                  of[k]->type);
    return h;
}

/* ---- algorithms: which, its workspace, the alignments it relies on, what it is for ---- */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t pref, int most,
                                              cublasLtMatmulHeuristicResult_t to[], int *n)
{
    const Preference *p = (const Preference *)pref;
    const Desc *q = (const Desc *)desc;
    const Layout *x = (const Layout *)a, *y = (const Layout *)b, *out = (const Layout *)d;
    (void)h;
    report.asked++;
    *n = 0;
    for (int k = 0; k < 4; k++)
        if (!is_power_of_two(p->aligned[k]))
            return CUBLAS_STATUS_INVALID_VALUE;
    if (!possible(q, x, y, (const Layout *)c, out))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (is_listed("FAKE_CUBLASLT_WITHOUT", q->epilogue))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (int k = 0; k < 3 && k < most; k++) {
        uint64_t workspace = k == 1 ? p->workspace : 0;
        to[*n] = (cublasLtMatmulHeuristicResult_t){
            .algo = {.data = {MAGIC, (uint64_t)k, workspace, p->aligned[0], p->aligned[1],
                              p->aligned[2], p->aligned[3], name_of(q, x, y, out)}},
            .workspaceSize = workspace,
            /* the first adds in place, in any order */
            .state = k == 0 && !(p->reductions & CUBLASLT_REDUCTION_SCHEME_INPLACE)
                         ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS};
        ++*n;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t h, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *to)
{
    const Desc *q = (const Desc *)desc;
    const Layout *x = (const Layout *)a, *y = (const Layout *)b, *out = (const Layout *)d;
    (void)h;
    report.checked++;
    to->workspaceSize = algo->data[2];
    return algo->data[0] == MAGIC && algo->data[7] == name_of(q, x, y, out)
        && possible(q, x, y, (const Layout *)c, out)
        && !is_listed("FAKE_CUBLASLT_WITHOUT", q->epilogue)
        ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

/* ---- products ---- */
static double element(const Layout *l, const void *at, int64_t k)
{
    return l->type == CUDA_R_64F    ? ((const double *)at)[k]
           : l->type == CUDA_R_16BF ? (double)ls_from_bf16(((const ls_bf16 *)at)[k])
           : l->type == CUDA_R_16F  ? (double)ls_from_f16(((const ls_f16 *)at)[k])
                                    : ((const float *)at)[k];
}

static double get(const Layout *l, const void *at, int64_t i, int64_t j, int32_t batch)
{
    return element(l, at, i + j * l->ld + batch * l->apart);
}

static void put(const Layout *l, void *at, int64_t i, int64_t j, int32_t batch, double v)
{
    int64_t k = i + j * l->ld + batch * l->apart;
    if (l->type == CUDA_R_64F)
        ((double *)at)[k] = v;
    else if (l->type == CUDA_R_16BF)
        ((ls_bf16 *)at)[k] = ls_to_bf16(ls_round_brain((float)v));
    else if (l->type == CUDA_R_16F)
        ((ls_f16 *)at)[k] = ls_to_f16(ls_round_half((float)v));
    else
        ((float *)at)[k] = (float)v;
}

static double factor(const Desc *d, int which, const Layout *l, const void *at, int64_t row,
                     int64_t col, int32_t batch)
{
    double v = d->turn[which] == CUBLAS_OP_T ? get(l, at, col, row, batch)
                                             : get(l, at, row, col, batch);
    if (d->compute != CUBLAS_COMPUTE_32F_FAST_TF32)
        return v;
    union { float f; uint32_t u; } x = {(float)v};
    x.u = (x.u + 0x1000) & ~UINT32_C(0x1fff);
    return x.f;
}

static double gelu(double x)
{
    return .5 * x * (1 + tanh(.7978845608028654 * (x + .044715 * x * x * x)));
}

static double gelu_slope(double x)
{
    double t = tanh(.7978845608028654 * (x + .044715 * x * x * x));
    return .5 * (1 + t) + .5 * x * (1 - t * t) * .7978845608028654 * (1 + 3 * .044715 * x * x);
}

static double vector_at(const Layout *l, const void *at, int64_t i)
{
    return element(l, at, i);
}

/* One element after the epilogue. */
static double finish(const Desc *d, const Layout *out, int64_t i, int64_t j, int32_t batch,
                     double v)
{
    const uint32_t e = d->epilogue;
    int64_t at = i + j * d->aux_ld + batch * d->aux_apart;
    unsigned char *byte = (unsigned char *)d->aux + at / 8, bit = (unsigned char)(1 << at % 8);
    Layout aux = {.type = out->type, .ld = d->aux_ld, .apart = d->aux_apart};
    if (e == CUBLASLT_EPILOGUE_DRELU)
        return *byte & bit ? v : 0;
    if (e == CUBLASLT_EPILOGUE_DGELU)
        return v * gelu_slope(get(&aux, d->aux, i, j, batch));
    if (e < 256 && (e & CUBLASLT_EPILOGUE_BIAS))
        v += vector_at(out, d->bias, i);
    if (e < 256 && (e & CUBLASLT_EPILOGUE_RELU)) {
        if (e & 128)
            *byte = (unsigned char)(v > 0 ? *byte | bit : *byte & ~bit);
        return v > 0 ? v : 0;
    }
    if (e < 256 && (e & CUBLASLT_EPILOGUE_GELU)) {
        if (e & 128)
            put(&aux, d->aux, i, j, batch, v);
        return gelu(v);
    }
    return v;
}

/* Sums of a factor over k. */
static void sums(const Desc *d, int which, const Layout *l, const void *at, const Layout *out,
                 int64_t n, int64_t depth)
{
    Layout vector = {.type = out->type};
    for (int64_t i = 0; i < n; i++) {
        double s = 0;
        for (int64_t k = 0; k < depth; k++)
            s += which == 0 ? factor(d, 0, l, at, i, k, 0) : factor(d, 1, l, at, k, i, 0);
        put(&vector, d->bias, i, 0, 0, s);
    }
}

static bool aligned(const void *p, uint64_t to) { return (uintptr_t)p % to == 0; }

typedef struct Product {        /* as it was asked for */
    Desc desc;
    Layout a, b, out;
    const void *A, *B, *C;      /* C: NULL, or what is added */
    void *D, *workspace;
    size_t bytes;
    int64_t depth;
    double by;
} Product;

static void multiply(const void *data)
{
    const Product *p = data;
    const Desc *d = &p->desc;
    const Layout *a = &p->a, *b = &p->b, *out = &p->out;
    int64_t rows = (int64_t)out->rows, cols = (int64_t)out->cols;
    if (p->bytes > 0)
        memset(p->workspace, 0xa5, p->bytes);
    for (int32_t q = 0; q < out->count; q++)
        for (int64_t j = 0; j < cols; j++)
            for (int64_t i = 0; i < rows; i++) {
                double s = 0;
                for (int64_t k = 0; k < p->depth; k++)
                    s += factor(d, 0, a, p->A, i, k, q) * factor(d, 1, b, p->B, k, j, q);
                put(out, p->D, i, j, q,
                    finish(d, out, i, j, q,
                           p->by * s + (p->C != NULL ? get(out, p->C, i, j, q) : 0)));
            }
    if (d->epilogue == CUBLASLT_EPILOGUE_BGRADA)
        sums(d, 0, a, p->A, out, rows, p->depth);
    if (d->epilogue == CUBLASLT_EPILOGUE_BGRADB)
        sums(d, 1, b, p->B, out, cols, p->depth);
}

/* Kernels are loaded when they first run, which no recording allows. */
static bool may_run(const cublasLtMatmulAlgo_t *algo, void *stream)
{
    static uint64_t loaded[ALGORITHMS];
    static int n;
    uint64_t name = mixed(algo->data[7], algo->data[1]);
    for (int k = 0; k < n; k++)
        if (loaded[k] == name)
            return true;
    if (n < ALGORITHMS)
        loaded[n++] = name;
    return !fake_stream_records(stream);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t ad, const void *B,
                              cublasLtMatrixLayout_t bd, const void *beta, const void *C,
                              cublasLtMatrixLayout_t cd, void *D, cublasLtMatrixLayout_t dd,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes,
                              cudaStream_t stream)
{
    const Desc *d = (const Desc *)desc;
    const Layout *a = (const Layout *)ad, *b = (const Layout *)bd, *out = (const Layout *)dd;
    bool wide = d->scale == CUDA_R_64F;
    double by = wide ? *(const double *)alpha : *(const float *)alpha;
    double keep = wide ? *(const double *)beta : *(const float *)beta;
    int64_t depth = (int64_t)(d->turn[0] == CUBLAS_OP_T ? a->rows : a->cols);
    (void)h;
    report.products++;
    if (algo->data[0] != MAGIC || algo->data[7] != name_of(d, a, b, out) || cd != dd
        || (keep == 0 ? C != D : keep != 1 || C == D) || !possible(d, a, b, (const Layout *)cd, out)
        || bytes < algo->data[2] || (bytes > 0 && workspace == NULL)
        || !aligned(workspace, WORKSPACE_ALIGNMENT)
        || !aligned(A, algo->data[3]) || !aligned(B, algo->data[4])
        || !aligned(C, algo->data[5]) || !aligned(D, algo->data[6]))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!may_run(algo, stream) || is_listed("FAKE_CUBLASLT_STOPS", d->epilogue))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    const Product p = {*d,    *a, *b, *out, A, B, keep != 0 ? C : NULL, D, workspace, algo->data[2],
                       depth, by};
    fake_stream_work(stream, multiply, &p, sizeof p);
    return CUBLAS_STATUS_SUCCESS;
}
