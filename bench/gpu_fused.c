/* bench/gpu_fused.c -- the gain of fusing batch norm into convolutions. For shapes of ResNet-50 at
 * batch 256: a convolution alone, with the sums of its result for the batch norm behind it, and
 * also with the batch norm and ReLU before it, each by the best of cuDNN's plans.
 *
 *   gpu_fused            on the GPU: one JSON line per shape, pattern and type: {"what", "value",
 * "unit"} gpu_fused DEVICE.json    without one: which patterns have plans, and how many
 *
 * Built by bench/gpu_ceilings.py with the sources of runtime/cuda/cudnn_*.c. */
#include "bench/gpu_open.h"
#include "runtime/cuda/cudnn_graph.h"

#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIED = 6, RUNS = 20, TENSORS = 8, BATCH = 256 };
enum { HALF = 2, BFLOAT16 = 9 };            /* cudnnDataType_t */
enum { X = 1, W, Y, SCALE, BIAS, SUM, SQUARES, VIRTUAL = 100 };

typedef struct Shape { int64_t in, out, size, kernel, stride; } Shape;
static const Shape shapes[] = {{64, 64, 56, 3, 1},
                               {64, 256, 56, 1, 1},
                               {128, 128, 28, 3, 1},
                               {256, 256, 14, 3, 1},
                               {512, 512, 7, 3, 1}};
static const char *const pattern[] = {"convolution", "convolution and sums",
                                      "batch norm, ReLU, convolution and sums"};

typedef struct Bench {
    LsDnn lib;
    void *handle;               /* NULL: there is no device */
    LsDnnDesc device;
    void *memory[TENSORS]; void *workspace;
} Bench;

typedef struct Case { Bench *b; LsDnnScope s; int type; Shape shape; int64_t next; } Case;

static LsDnnDesc tensor(Case *c, int64_t uid, int type, const int64_t dim[4])
{
    int64_t stride[4] = {dim[1] * dim[2] * dim[3], 1, dim[1] * dim[3], dim[1]}, align = 16;
    bool inner = uid >= VIRTUAL;
    LsDnnDesc d = ls_dnn_make(&c->s, LS_DNN_TENSOR);
    ls_dnn_set_int(&c->s, d, LS_DNN_TENSOR_UID, uid);
    ls_dnn_set_int(&c->s, d, LS_DNN_TENSOR_ALIGNMENT, align);
    ls_dnn_set(&c->s, d, LS_DNN_TENSOR_TYPE, LS_DNN_T_DATA_TYPE, 1, &type);
    ls_dnn_set(&c->s, d, LS_DNN_TENSOR_DIMS, LS_DNN_T_INT64, 4, dim);
    ls_dnn_set(&c->s, d, LS_DNN_TENSOR_STRIDES, LS_DNN_T_INT64, 4, stride);
    ls_dnn_set(&c->s, d, LS_DNN_TENSOR_VIRTUAL, LS_DNN_T_BOOLEAN, 1, &inner);
    ls_dnn_finalize(&c->s, d, "tensor");
    return d;
}

static LsDnnDesc pointwise(Case *c, int mode, LsDnnDesc x, LsDnnDesc b, LsDnnDesc y)
{
    int type = LS_DNN_FLOAT;
    LsDnnDesc p = ls_dnn_make(&c->s, LS_DNN_POINTWISE), o;
    ls_dnn_set(&c->s, p, LS_DNN_POINTWISE_MODE, LS_DNN_T_POINTWISE_MODE, 1, &mode);
    ls_dnn_set(&c->s, p, LS_DNN_POINTWISE_PRECISION, LS_DNN_T_DATA_TYPE, 1, &type);
    ls_dnn_finalize(&c->s, p, "pointwise");
    o = ls_dnn_make(&c->s, LS_DNN_OP_POINTWISE);
    ls_dnn_set_desc(&c->s, o, LS_DNN_OP_POINTWISE_DESC, p);
    ls_dnn_set_desc(&c->s, o, LS_DNN_OP_POINTWISE_X, x);
    if (b != NULL)
        ls_dnn_set_desc(&c->s, o, LS_DNN_OP_POINTWISE_B, b);
    ls_dnn_set_desc(&c->s, o, LS_DNN_OP_POINTWISE_Y, y);
    ls_dnn_finalize(&c->s, o, "pointwise operation");
    return o;
}

static LsDnnDesc convolution(Case *c, LsDnnDesc x, LsDnnDesc w, LsDnnDesc y)
{
    int mode = LS_DNN_CROSS_CORRELATION, type = LS_DNN_FLOAT;
    const int64_t pad[2] = {c->shape.kernel / 2, c->shape.kernel / 2}, one[2] = {1, 1};
    const int64_t stride[2] = {c->shape.stride, c->shape.stride};
    const float alpha = 1, beta = 0;
    LsDnnDesc d = ls_dnn_make(&c->s, LS_DNN_CONVOLUTION), o;
    ls_dnn_set(&c->s, d, LS_DNN_CONV_PRECISION, LS_DNN_T_DATA_TYPE, 1, &type);
    ls_dnn_set(&c->s, d, LS_DNN_CONV_MODE, LS_DNN_T_CONV_MODE, 1, &mode);
    ls_dnn_set_int(&c->s, d, LS_DNN_CONV_SPATIAL, 2);
    ls_dnn_set(&c->s, d, LS_DNN_CONV_DILATIONS, LS_DNN_T_INT64, 2, one);
    ls_dnn_set(&c->s, d, LS_DNN_CONV_STRIDES, LS_DNN_T_INT64, 2, stride);
    ls_dnn_set(&c->s, d, LS_DNN_CONV_PRE_PADS, LS_DNN_T_INT64, 2, pad);
    ls_dnn_set(&c->s, d, LS_DNN_CONV_POST_PADS, LS_DNN_T_INT64, 2, pad);
    ls_dnn_finalize(&c->s, d, "convolution");
    o = ls_dnn_make(&c->s, LS_DNN_OP_CONV_FORWARD);
    ls_dnn_set_desc(&c->s, o, LS_DNN_FORWARD_CONV, d);
    ls_dnn_set_desc(&c->s, o, LS_DNN_FORWARD_X, x);
    ls_dnn_set_desc(&c->s, o, LS_DNN_FORWARD_W, w);
    ls_dnn_set_desc(&c->s, o, LS_DNN_FORWARD_Y, y);
    ls_dnn_set(&c->s, o, LS_DNN_FORWARD_ALPHA, LS_DNN_T_FLOAT, 1, &alpha);
    ls_dnn_set(&c->s, o, LS_DNN_FORWARD_BETA, LS_DNN_T_FLOAT, 1, &beta);
    ls_dnn_finalize(&c->s, o, "convolution operation");
    return o;
}

static LsDnnDesc sums(Case *c, LsDnnDesc y)
{
    int mode = LS_DNN_SUM_AND_SQUARES, type = LS_DNN_FLOAT;
    const int64_t dim[4] = {1, c->shape.out, 1, 1};
    LsDnnDesc sum = tensor(c, SUM, LS_DNN_FLOAT, dim),
              squares = tensor(c, SQUARES, LS_DNN_FLOAT, dim);
    LsDnnDesc o = ls_dnn_make(&c->s, LS_DNN_OP_STATISTICS);
    ls_dnn_set(&c->s, o, LS_DNN_STATISTICS_MODE, LS_DNN_T_STATISTICS_MODE, 1, &mode);
    ls_dnn_set(&c->s, o, LS_DNN_STATISTICS_PRECISION, LS_DNN_T_DATA_TYPE, 1, &type);
    ls_dnn_set_desc(&c->s, o, LS_DNN_STATISTICS_X, y);
    ls_dnn_set_desc(&c->s, o, LS_DNN_STATISTICS_SUM, sum);
    ls_dnn_set_desc(&c->s, o, LS_DNN_STATISTICS_SQUARES, squares);
    ls_dnn_finalize(&c->s, o, "sums");
    return o;
}

/* The operations of pattern `which`, in order. */
static LsDnnDesc graph_of(Case *c, int which)
{
    const Shape h = c->shape;
    const int64_t to = (h.size - 1) / h.stride + 1;
    const int64_t x[4] = {BATCH, h.in, h.size, h.size}, w[4] = {h.out, h.in, h.kernel, h.kernel};
    const int64_t y[4] = {BATCH, h.out, to, to}, channel[4] = {1, h.in, 1, 1};
    LsDnnDesc op[6], from = tensor(c, X, c->type, x);
    int n = 0;
    for (int k = 0; which == 2 && k < 3; k++) {
        static const int mode[] = {LS_DNN_MUL, LS_DNN_ADD, LS_DNN_RELU};
        LsDnnDesc by = k < 2 ? tensor(c, SCALE + k, c->type, channel) : NULL;
        LsDnnDesc next = tensor(c, VIRTUAL + k, k < 2 ? LS_DNN_FLOAT : c->type, x);
        op[n++] = pointwise(c, mode[k], from, by, next);
        from = next;
    }
    LsDnnDesc result = tensor(c, Y, c->type, y);
    op[n++] = convolution(c, from, tensor(c, W, c->type, w), result);
    if (which >= 1)
        op[n++] = sums(c, result);
    LsDnnDesc g = ls_dnn_make(&c->s, LS_DNN_GRAPH);
    ls_dnn_set(&c->s, g, LS_DNN_GRAPH_OPS, LS_DNN_T_DESC, n, op);
    ls_dnn_finalize(&c->s, g, "graph");
    return g;
}

static LsDnnDesc pack_of(Case *c, int which)
{
    int64_t uid[TENSORS - 1] = {X, W, Y, SUM, SQUARES, SCALE, BIAS};
    void *at[TENSORS - 1];
    int n = which == 0 ? 3 : which == 1 ? 5 : 7;
    for (int k = 0; k < n; k++)
        at[k] = c->b->memory[uid[k]];
    LsDnnDesc d = ls_dnn_make(&c->s, LS_DNN_VARIANT_PACK);
    ls_dnn_set(&c->s, d, LS_DNN_PACK_UIDS, LS_DNN_T_INT64, n, uid);
    ls_dnn_set(&c->s, d, LS_DNN_PACK_POINTERS, LS_DNN_T_POINTER, n, at);
    ls_dnn_set(&c->s, d, LS_DNN_PACK_WORKSPACE, LS_DNN_T_POINTER, 1, &c->b->workspace);
    ls_dnn_finalize(&c->s, d, "addresses");
    return d;
}

/* ms of one run; < 0: it fails. */
static double time_plan(Case *c, LsDnnDesc plan, LsDnnDesc pack)
{
    cudaEvent_t from, to;
    float ms = -1;
    int status = 0;
    cudaEventCreate(&from);
    cudaEventCreate(&to);
    for (int k = 0; k < 3 && status == 0; k++)
        status = c->b->lib.api.BackendExecute(c->b->handle, plan, pack);
    cudaEventRecord(from, NULL);
    for (int k = 0; k < RUNS && status == 0; k++)
        status = c->b->lib.api.BackendExecute(c->b->handle, plan, pack);
    cudaEventRecord(to, NULL);
    if (cudaEventSynchronize(to) != cudaSuccess || status != 0
        || cudaEventElapsedTime(&ms, from, to) != cudaSuccess)
        return -1;
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    return (double)ms / RUNS;
}

/* Tries the proposed plans. With a device returns the best time, ms; else the number of plans that
 * can be made. */
static double best(Case *c, int which, int64_t room)
{
    const LsDnn *lib = &c->b->lib;
    LsDnnDesc graph = graph_of(c, which), config[64],
              pack = c->b->handle ? pack_of(c, which) : NULL;
    int64_t n = 0;
    double found = c->b->handle ? -1 : 0;
    int mode = LS_DNN_MODE_A, made = 0;
    LsDnnDesc h = ls_dnn_make(&c->s, LS_DNN_HEURISTICS);
    ls_dnn_set_desc(&c->s, h, LS_DNN_HEURISTICS_GRAPH, graph);
    ls_dnn_set(&c->s, h, LS_DNN_HEURISTICS_MODE, LS_DNN_T_HEURISTICS_MODE, 1, &mode);
    ls_dnn_set_desc(&c->s, h, LS_DNN_HEURISTICS_DEVICE, c->b->device);
    ls_dnn_finalize(&c->s, h, "heuristics");
    for (int k = 0; k < 64; k++)
        config[k] = ls_dnn_make(&c->s, LS_DNN_ENGINE_CONFIG);
    if (c->s.failed
        || lib->api.BackendGetAttribute(h, LS_DNN_HEURISTICS_RESULTS, LS_DNN_T_DESC, 64, &n, config)
               != 0)
        return found;
    for (int64_t k = 0; k < n && made < TRIED; k++) {
        int64_t bytes = 0, one;
        LsDnnDesc plan = ls_dnn_make(&c->s, LS_DNN_PLAN);
        ls_dnn_set_desc(&c->s, plan, LS_DNN_PLAN_CONFIG, config[k]);
        ls_dnn_set_desc(&c->s, plan, LS_DNN_PLAN_DEVICE, c->b->device);
        if (c->s.failed || lib->api.BackendFinalize(plan) != 0
            || lib->api.BackendGetAttribute(plan, LS_DNN_PLAN_WORKSPACE, LS_DNN_T_INT64, 1, &one,
                                            &bytes)
            || bytes > room)
            continue;
        made++;
        double ms = c->b->handle ? time_plan(c, plan, pack) : -1;
        if (c->b->handle == NULL)
            found = made;
        else if (ms >= 0 && (found < 0 || ms < found))
            found = ms;
    }
    return found;
}

/* Fills with numbers of either sign that are not zero: GPUs are faster on zeros. */
static bool take_memory(Bench *b)
{
    enum { BYTES = 1 << 30 };
    unsigned char *random = malloc(BYTES / 16);
    uint64_t r = 1;
    bool ok = random != NULL;
    for (int64_t k = 0; ok && k < BYTES / 16; k++) {    /* halves between 0.03 and 2,
                                                         * little-endian */
        r = r * 6364136223846793005u + 1442695040888963407u;
        random[k] =
            (unsigned char)(k % 2 == 0 ? r >> 56 : (r >> 40 & 0x83) | 0x28 | (r >> 50 & 0x14));
    }
    for (int t = X; ok && t < TENSORS; t++) {
        ok = cudaMalloc(&b->memory[t], BYTES) == cudaSuccess;
        for (int k = 0; ok && k < 16; k++)
            ok = cudaMemcpy((char *)b->memory[t] + (size_t)k * (BYTES / 16), random, BYTES / 16,
                            cudaMemcpyHostToDevice) == cudaSuccess;
    }
    free(random);
    return ok && cudaMalloc(&b->workspace, BYTES) == cudaSuccess;
}

int main(int argc, char **argv)
{
    static const struct { const char *name; int type; } types[] = {
        {"fp16", HALF}, {"bf16", BFLOAT16}, {"f32", LS_DNN_FLOAT}};
    Bench b = {0};
    char err[600];
    if (!gpu_open(&b.lib, argc > 1 ? argv[1] : NULL, &b.device, &b.handle, err, sizeof err))
        return fprintf(stderr, "gpu_fused: %s\n", err), 5;
    if (b.handle != NULL && !take_memory(&b))
        return fprintf(stderr, "gpu_fused: too little memory on the device\n"), 5;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
            for (int which = 0; which < 3; which++) {
                const Shape h = shapes[k];
                Case c = {.b = &b, .s = {.lib = &b.lib}, .type = types[t].type, .shape = h};
                double v = best(&c, which, (int64_t)1 << 30);
                printf("{\"what\": \"cuDNN: %s, %" PRId64 "x%" PRId64 " %" PRId64 "->%" PRId64
                       " @%" PRId64 " %s\", \"value\": %.5g, \"unit\": \"%s\"}\n",
                       pattern[which], h.kernel, h.kernel, h.in, h.out, h.size, types[t].name, v,
                       b.handle ? "ms (-1: none runs)" : "plans");
                if (c.s.failed)
                    fprintf(stderr, "%s: %s\n", pattern[which], c.s.err);
                ls_dnn_scope_drop(&c.s);
                fflush(stdout);
            }
    return 0;
}
