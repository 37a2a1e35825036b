/* bench/gpu_choices.c -- measures the libraries' first proposals: convolutions with every plan that
 * cuDNN proposes, products with the first algorithm of cuBLASLt within workspaces of several sizes.
 *
 *   gpu_choices CONVOLUTIONS [DEVICE.json]
 *
 * CONVOLUTIONS: lines as ls_dnn_conv_text writes them, in TF32; those of a program are the keys in
 * the compiler's cache of plans (bench/gpu_ceilings.py takes them from there). One JSON line per
 * convolution and per product: {"what", "value", "unit"}; of a convolution the value is the first
 * proposal's time over that of the fastest, and "plans" lists [ms, workspace bytes, engine]. With a
 * description of a device, and no device: how many plans can be made. */
#include "bench/gpu_open.h"
#include "runtime/cuda/cublaslt_library.h"
#include "runtime/cuda/cudnn_graph.h"

#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLANS = 40, LINE = 2048 };
#define TENSOR_BYTES ((size_t)1800 << 20)
#define WORKSPACE_BYTES ((size_t)6 << 30)

typedef struct Bench {
    LsDnn dnn;
    void *handle; /* NULL: there is no device */
    LsDnnDesc device;
    void *memory[3], *workspace;
    cudaEvent_t from, to;
} Bench;

/* ---- convolutions from text ---- */
static const char *numbers(const char *text, int64_t *to)
{
    char *end;
    for (int n = 0; n < LS_DNN_RANK; n++) {
        to[n] = strtoll(text, &end, 10);
        if (*end != ',')
            return end;
        text = end + 1;
    }
    return text;
}

static bool field(const char *line, const char *name, int64_t *to)
{
    const char *at = strstr(line, name);
    if (at != NULL)
        numbers(at + strlen(name), to);
    return at != NULL;
}

static bool read_conv(const char *line, LsDnnConv *c)
{
    *c = (LsDnnConv){.axes = 2,
                     .real_bytes = 4,
                     .kind = strncmp(line, "forward", 7) == 0 ? LS_DNN_CONV_FORWARD
                             : strncmp(line, "data", 4) == 0  ? LS_DNN_CONV_DATA
                                                              : LS_DNN_CONV_WEIGHTS};
    const char *pad = strstr(line, " pad ");
    if (pad == NULL || strchr(line, '+') != NULL) /* with fused operations: left out */
        return false;
    numbers(numbers(pad + 5, c->pad_lo) + 1, c->pad_hi);
    return field(line, " x ", c->x) && field(line, " w ", c->w) && field(line, " y ", c->y)
           && field(line, " stride ", c->stride) && field(line, " dilation ", c->dilation);
}

/* ---- time ---- */
static LsDnnDesc pack_of(const Bench *b, LsDnnScope *s)
{
    const int64_t uid[3] = {LS_DNN_X, LS_DNN_W, LS_DNN_Y};
    LsDnnDesc d = ls_dnn_make(s, LS_DNN_VARIANT_PACK);
    ls_dnn_set(s, d, LS_DNN_PACK_UIDS, LS_DNN_T_INT64, 3, uid);
    ls_dnn_set(s, d, LS_DNN_PACK_POINTERS, LS_DNN_T_POINTER, 3, b->memory);
    ls_dnn_set(s, d, LS_DNN_PACK_WORKSPACE, LS_DNN_T_POINTER, 1, &b->workspace);
    ls_dnn_finalize(s, d, "addresses");
    return d;
}

typedef struct Job {
    const Bench *b;
    LsDnnDesc plan, pack;
} Job;

static bool run_plan(const void *job)
{
    const Job *j = job;
    return j->b->dnn.api.BackendExecute(j->b->handle, j->plan, j->pack) == LS_DNN_OK;
}

/* ms of one run, measured over some runs after a first run; < 0: it fails. Runs that take far
 * longer than `best` end early. */
static double time_of(const Bench *b, bool (*run)(const void *), const void *job, double best)
{
    float ms = -1;
    for (int count = 1, round = 0; round < 3; round++) {
        bool ok = cudaEventRecord(b->from, NULL) == cudaSuccess;
        for (int k = 0; k < count && ok; k++)
            ok = run(job);
        if (!ok || cudaEventRecord(b->to, NULL) != cudaSuccess
            || cudaEventSynchronize(b->to) != cudaSuccess
            || cudaEventElapsedTime(&ms, b->from, b->to) != cudaSuccess)
            return -1;
        ms /= (float)count;
        if (round == 1 && best > 0 && ms > 4 * best)
            return (double)ms;
        count = round == 0 ? 1 : ms < 0.3f ? 10 : 4;
    }
    return (double)ms;
}

/* ---- convolutions ---- */
static void time_conv(Bench *b, const char *name, const LsDnnConv *c)
{
    char err[500];
    LsDnnScope scope = {.lib = &b->dnn};
    LsDnnDesc pack = b->handle != NULL ? pack_of(b, &scope) : NULL;
    const LsDnnRules rules = {.tf32 = true};
    LsDnnSearch *s = ls_dnn_search(&b->dnn, b->device, c, &rules, (int64_t)WORKSPACE_BYTES, PLANS,
                                   err, sizeof err);
    int n = s != NULL ? ls_dnn_search_count(s) : 0;
    double best = -1, first = -1;
    printf("{\"what\": \"%s\", \"plans\": [", name);
    for (int k = 0; k < n; k++) {
        const LsDnnPlan *p = ls_dnn_search_plan(s, k);
        double ms = b->handle != NULL ? time_of(b, run_plan, &(Job){b, p->plan, pack}, best) : -1;
        best = ms > 0 && (best < 0 || ms < best) ? ms : best;
        first = first < 0 ? ms : first;
        printf("%s[%.4f, %" PRId64 ", %d]", k > 0 ? ", " : "", ms, p->workspace, p->engine);
    }
    if (b->handle != NULL)
        printf("], \"value\": %.4g, \"unit\": \"times the fastest plan\"}\n",
               best > 0 ? first / best : -1);
    else
        printf("], \"value\": %d, \"unit\": \"plans\"}\n", n);
    fflush(stdout);
    ls_dnn_search_free(s);
    ls_dnn_scope_drop(&scope);
}

static bool time_convs(Bench *b, const char *path)
{
    char line[LINE];
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return false;
    while (fgets(line, sizeof line, f) != NULL) {
        LsDnnConv c;
        line[strcspn(line, "\n\"\\")] = '\0';
        if (read_conv(line, &c))
            time_conv(b, line, &c);
    }
    fclose(f);
    return true;
}

/* ---- products ---- */
typedef struct Product { /* column-major d [m][n] of k terms; see run_product */
    const Bench *b;
    const LsCublasLibrary *lib;
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t layout[3];
    cublasLtMatmulHeuristicResult_t choice;
    size_t room;
} Product;

static bool run_product(const void *job)
{
    const Product *p = job;
    const float one = 1, zero = 0;
    return p->lib->Matmul(p->handle, p->desc, &one, p->b->memory[0], p->layout[0], p->b->memory[1],
                          p->layout[1], &zero, p->b->memory[2], p->layout[2], p->b->memory[2],
                          p->layout[2], &p->choice.algo, p->b->workspace, p->room,
                          NULL) == CUBLAS_STATUS_SUCCESS;
}

static void time_product(Product *p, const char *name, const uint64_t size[3], const bool turn[2])
{
    static const size_t rooms[] = {0, 64 << 10, 1 << 20, 8 << 20, 16 << 20, 32 << 20};
    const LsCublasLibrary *l = p->lib;
    const uint64_t rows[3] = {turn[0] ? size[2] : size[0], turn[1] ? size[1] : size[2], size[0]};
    const uint64_t cols[3] = {turn[0] ? size[0] : size[2], turn[1] ? size[2] : size[1], size[1]};
    const int32_t op[2] = {turn[0] ? CUBLAS_OP_T : CUBLAS_OP_N,
                           turn[1] ? CUBLAS_OP_T : CUBLAS_OP_N};
    l->MatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F);
    l->MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &op[0], sizeof op[0]);
    l->MatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &op[1], sizeof op[1]);
    for (int k = 0; k < 3; k++)
        l->MatrixLayoutCreate(&p->layout[k], CUDA_R_32F, rows[k], cols[k], (int64_t)rows[k]);
    for (size_t k = 0; k < sizeof rooms / sizeof *rooms; k++) {
        cublasLtMatmulPreference_t pref = NULL;
        int got = 0;
        p->room = rooms[k];
        l->MatmulPreferenceCreate(&pref);
        l->MatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &p->room,
                                        sizeof p->room);
        l->MatmulAlgoGetHeuristic(p->handle, p->desc, p->layout[0], p->layout[1], p->layout[2],
                                  p->layout[2], pref, 1, &p->choice, &got);
        printf("{\"what\": \"cuBLASLt: %s within %zu KiB\", \"value\": %.4g, \"unit\": \"ms\"}\n",
               name, p->room >> 10, got > 0 ? time_of(p->b, run_product, p, -1) : -1);
        l->MatmulPreferenceDestroy(pref);
    }
    for (int k = 0; k < 3; k++)
        l->MatrixLayoutDestroy(p->layout[k]);
    l->MatmulDescDestroy(p->desc);
}

static bool time_products(const Bench *b)
{
    static const struct {
        const char *name;
        uint64_t size[3];
        bool turn[2];
    } row[] = {
        {"16384 x 2304 x 768", {2304, 16384, 768}, {false, false}},
        {"16384 x 768 x 2304, turned", {768, 16384, 2304}, {true, false}},
        {"768 x 768 x 16384, turned", {768, 768, 16384}, {false, true}},
        {"16384 x 50257 x 768", {50257, 16384, 768}, {true, false}},
        {"16384 x 50260 x 768", {50260, 16384, 768}, {true, false}},
    };
    LsCublasLibrary lib;
    LsError e = {0};
    Product p = {.b = b, .lib = &lib};
    if (!ls_cublas_library_open(&lib, NULL, &e) || lib.Create(&p.handle) != CUBLAS_STATUS_SUCCESS)
        return fprintf(stderr, "gpu_choices: cuBLASLt: %s\n", e.text), false;
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        time_product(&p, row[k].name, row[k].size, row[k].turn);
    lib.Destroy(p.handle);
    ls_cublas_library_close(&lib);
    return true;
}

/* ---- the whole ---- */
/* Fills with numbers of either sign below 1: GPUs are faster on zeros. */
static bool take_memory(Bench *b)
{
    enum { COUNT = 1 << 24 };
    float *random = malloc(COUNT * sizeof *random);
    uint64_t r = 1;
    bool ok = random != NULL;
    for (int k = 0; ok && k < COUNT; k++) {
        r = r * 6364136223846793005u + 1442695040888963407u;
        random[k] = (float)(int32_t)(r >> 32) / 2147483648.0f;
    }
    for (int t = 0; ok && t < 3; t++) {
        size_t bytes = 2 * TENSOR_BYTES; /* that of a product's result */
        ok = cudaMalloc(&b->memory[t], bytes) == cudaSuccess;
        for (size_t at = 0; ok && at + COUNT * sizeof *random <= bytes;
             at += COUNT * sizeof *random)
            ok = cudaMemcpy((char *)b->memory[t] + at, random, COUNT * sizeof *random,
                            cudaMemcpyHostToDevice) == cudaSuccess;
    }
    free(random);
    return ok && cudaMalloc(&b->workspace, WORKSPACE_BYTES) == cudaSuccess
           && cudaEventCreate(&b->from) == cudaSuccess && cudaEventCreate(&b->to) == cudaSuccess;
}

int main(int argc, char **argv)
{
    Bench b = {0};
    char err[1300];
    if (argc < 2)
        return fprintf(stderr, "usage: gpu_choices CONVOLUTIONS [DEVICE.json]\n"), 2;
    if (!gpu_open(&b.dnn, argc > 2 ? argv[2] : NULL, &b.device, &b.handle, err, sizeof err))
        return fprintf(stderr, "gpu_choices: %s\n", err), 5;
    if (b.handle != NULL && !take_memory(&b))
        return fprintf(stderr, "gpu_choices: too little memory on the device\n"), 5;
    bool products = b.handle == NULL || time_products(&b);
    if (!time_convs(&b, argv[1]))
        return perror(argv[1]), 1;
    return products ? 0 : 5;
}
