/* runtime/cuda_ranks/cuda_ranks.c -- GPUs of ranks: the table LsDeviceRanks for the device of kind
 * "cuda". */
#include "runtime/engine/device_ranks.h"

#include "runtime/comm_nccl/comm_nccl.h"
#include "runtime/comm_nccl/nccl_library.h"
#include "runtime/cuda/cuda_error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADD_UNIT = 4096 };       /* elements: runtime/cuda_kernels/ls_cuda_add.h */

static bool choose(int local, LsDeviceId *id, LsError *e)
{
    int count = 0;
    struct cudaDeviceProp prop;
    cudaError_t err = cudaGetDeviceCount(&count);
    if (err != cudaSuccess || count == 0)
        return ls_cuda_none(err, e);
    err = cudaSetDevice(local % count);
    if (err == cudaSuccess)
        err = cudaGetDeviceProperties(&prop, local % count);
    if (err != cudaSuccess)
        return ls_cuda_none(err, e);
    memcpy(id->id, &prop.uuid, sizeof id->id);
    snprintf(id->name, sizeof id->name, "%.63s", prop.name);
    return true;
}

static bool can_join(LsError *why)
{
    LsNcclApi api;
    return ls_nccl_load(&api, why);
}

static int query(void *stream) { return (int)cudaStreamQuery(stream); }

static LsComm *join(LsDevice *d, LsComm *under, LsError *e)
{
    LsCuda *c = ls_cuda_of(d);
    if (!ls_cuda_check(c, cudaStreamCreateWithFlags(&c->messages, cudaStreamNonBlocking),
                       "make a stream")) {
        ls_device_ok(d, e);
        return NULL;
    }
    return ls_comm_nccl(under, (LsNcclStream){c->messages, query, cudaErrorNotReady}, e);
}

static void *take(LsDevice *d, int64_t bytes)
{
    LsCuda *c = ls_cuda_of(d);
    void *at = NULL;
    if (c->ntaken == LS_CUDA_TAKEN)
        return ls_device_fail(d, LS_EXIT_FAIL, "too many pieces of memory"), NULL;
    cudaError_t err = cudaMalloc(&at, (size_t)(bytes > 0 ? bytes : 1));
    if (err == cudaErrorMemoryAllocation) {
        cudaGetLastError();     /* clears it */
        ls_device_fail(d, LS_EXIT_DEVICE,
                       "%s has no %" PRId64
                       " bytes left for training over ranks: compile with a smaller "
                       "--budget or --batch",
                       c->info.name, bytes);
        return NULL;
    }
    if (err == cudaSuccess) {
        c->taken[c->ntaken++] = at;
        err = cudaMemsetAsync(at, 0, (size_t)(bytes > 0 ? bytes : 1), c->stream);
    }
    return ls_cuda_check(c, err, "take memory for training over ranks") ? at : NULL;
}

static bool copy(LsDevice *d, void *to, const void *from, int64_t bytes, enum cudaMemcpyKind kind)
{
    LsCuda *c = ls_cuda_of(d);
    return ls_cuda_check(c, cudaMemcpyAsync(to, from, (size_t)bytes, kind, c->stream),
                         "copy what ranks exchange");
}

static bool fetch(LsDevice *d, void *here, const void *there, int64_t bytes)
{
    return copy(d, here, there, bytes, cudaMemcpyDeviceToHost);
}

static bool store(LsDevice *d, void *there, const void *here, int64_t bytes)
{
    return copy(d, there, here, bytes, cudaMemcpyHostToDevice);
}

static bool move(LsDevice *d, void *to, const void *from, int64_t bytes)
{
    return copy(d, to, from, bytes, cudaMemcpyDeviceToDevice);
}

static bool add(LsDevice *d, void *to, const void *a, const void *b, int64_t bytes)
{
    LsCuda *c = ls_cuda_of(d);
    LsRun run = {.device = d};
    void *const arg[] = {to, (void *)(uintptr_t)a, (void *)(uintptr_t)b};
    const int64_t n = bytes / d->p->real_bytes;
    ls_cuda_launch_with(&run, c->program->add, (n + ADD_UNIT - 1) / ADD_UNIT, arg, 3, &n, 1);
    return d->error.code == LS_EXIT_DONE;
}

static bool settle(LsDevice *d)
{
    LsCuda *c = ls_cuda_of(d);
    return ls_cuda_check(c, cudaStreamSynchronize(c->stream), "run the step");
}

static bool points(LsDevice *d, uint32_t n)
{
    LsCuda *c = ls_cuda_of(d);
    const unsigned flags = cudaEventDisableTiming | cudaEventBlockingSync;
    c->point = calloc(n + 1, sizeof *c->point);
    c->copied = calloc(n + 1, sizeof *c->copied);
    if (c->point == NULL || c->copied == NULL)
        return ls_device_fail(d, LS_EXIT_FAIL, "out of memory");
    cudaError_t err = cudaStreamCreateWithFlags(&c->beside, cudaStreamNonBlocking);
    for (; c->npoint < n && err == cudaSuccess; c->npoint += err == cudaSuccess) {
        err = cudaEventCreateWithFlags(&c->point[c->npoint], flags);
        if (err == cudaSuccess
            && (err = cudaEventCreateWithFlags(&c->copied[c->npoint], flags)) != cudaSuccess)
            cudaEventDestroy(c->point[c->npoint]);
    }
    return ls_cuda_check(c, err, "make streams and events");
}

static bool point(LsDevice *d, uint32_t k)
{
    LsCuda *c = ls_cuda_of(d);
    return ls_cuda_check(c, cudaEventRecord(c->point[k], c->stream), "note the end of a gradient");
}

static bool beside(LsDevice *d, uint32_t k, void *here, const void *there, int64_t bytes)
{
    LsCuda *c = ls_cuda_of(d);
    cudaError_t err = cudaStreamWaitEvent(c->beside, c->point[k], 0);
    if (err == cudaSuccess)
        err = cudaMemcpyAsync(here, there, (size_t)bytes, cudaMemcpyDeviceToHost, c->beside);
    if (err == cudaSuccess)
        err = cudaEventRecord(c->copied[k], c->beside);
    return ls_cuda_check(c, err, "copy what ranks exchange");
}

static bool beside_done(LsDevice *d, uint32_t k)
{
    LsCuda *c = ls_cuda_of(d);
    return ls_cuda_check(c, cudaEventSynchronize(c->copied[k]), "copy what ranks exchange");
}

static bool launch(LsDevice *d, uint32_t k, LsComm *comm, LsError *e)
{
    LsCuda *c = ls_cuda_of(d);
    return ls_cuda_check(c, cudaStreamWaitEvent(c->messages, c->point[k], 0), "start messages")
               ? ls_comm_nccl_launch(comm, e)
               : ls_device_ok(d, e);
}

static bool numbers(LsDevice *d, const LsRunSet *set, uint32_t n)
{
    LsCuda *c = ls_cuda_of(d);
    if (n > c->nset) {
        c->set = take(d, n * (int64_t)sizeof *set);
        c->nset = c->set != NULL ? n : 0;
    }
    return c->set != NULL && store(d, c->set, set, n * (int64_t)sizeof *set);
}

static void use(LsDevice *d, int64_t k)
{
    LsCuda *c = ls_cuda_of(d);
    if (c->begun == NULL)
        c->begun = c->numbers;
    c->numbers = k < 0 ? c->begun : &((LsRunSet *)c->set)[k].of;
}

const LsDeviceRanks ls_cuda_ranks = {
    .choose = choose,
    .can_join = can_join,
    .join = join,
    .take = take,
    .fetch = fetch,
    .store = store,
    .move = move,
    .add = add,
    .settle = settle,
    .points = points,
    .point = point,
    .beside = beside,
    .beside_done = beside_done,
    .launch = launch,
    .numbers = numbers,
    .use = use,
};
