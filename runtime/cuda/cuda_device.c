/* runtime/cuda/cuda_device.c -- opens the GPU, allocates its memory once, copies to and from it. */
#include "runtime/cuda/cuda_caller.h"
#include "runtime/cuda/cuda_error.h"
#include "runtime/cuda/cuda_follow.h"
#include "runtime/cuda/cuda_launch.h"
#include "runtime/cuda/cuda_order.h"
#include "runtime/cuda/cuda_record.h"
#include "runtime/cuda/cuda_stopwatch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256 };           /* bytes; cudaMalloc's alignment, enough for 16-byte accesses */

/* ---- interface for the libraries' modules ---- */

cudaStream_t ls_cuda_stream(const LsRun *run) { return ls_cuda_of(run->device)->stream; }

const LsCudaInfo *ls_cuda_info(const LsRun *run) { return &ls_cuda_of(run->device)->info; }

FILE *ls_cuda_notes(const LsRun *run)
{
    return run->device->p->accelerator.silent ? NULL : stderr;
}

const char *ls_cuda_node(const LsRun *run)
{
    return run->device->at != NULL ? run->device->at->name : NULL;
}

void *ls_cuda_library(const LsRun *run, LsCudaSlot slot)
{
    return ls_cuda_of(run->device)->library[slot];
}

const LsStopwatch *ls_cuda_tuning(const LsRun *run)
{
    const LsCuda *c = ls_cuda_of(run->device);
    return c->d.tune ? &c->watch : NULL;
}

/* ---- opening ---- */

static bool find_device(LsCuda *c, LsError *e)
{
    LsCudaInfo *i = &c->info;
    int count = 0;
    struct cudaDeviceProp prop;
    cudaError_t err = cudaGetDeviceCount(&count);
    if (err != cudaSuccess || count == 0)
        return ls_cuda_none(err, e);
    err = cudaGetDevice(&i->device);    /* the first of CUDA_VISIBLE_DEVICES, or that of the rank */
    if (err == cudaSuccess)
        err = cudaSetDevice(i->device);
    if (err == cudaSuccess)
        err = cudaGetDeviceProperties(&prop, i->device);
    if (err != cudaSuccess)
        return ls_cuda_none(err, e);
    i->major = prop.major;
    i->minor = prop.minor;
    i->processors = prop.multiProcessorCount;
    snprintf(i->name, sizeof i->name, "%.63s", prop.name);
    cudaDriverGetVersion(&i->driver);
    return true;
}

static bool make_order(LsCuda *c)
{
    cudaError_t err = cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking);
    if (err == cudaSuccess)
        err = cudaStreamCreateWithFlags(&c->copy, cudaStreamNonBlocking);
    /* Waiting blocks instead of spinning: the next run is in progress by then, so no time is
     * lost. */
    const unsigned flags = cudaEventDisableTiming | cudaEventBlockingSync;
    for (int s = 0; s < LS_DEVICE_SLOTS && err == cudaSuccess; s++) {
        err = cudaEventCreateWithFlags(&c->ready[s], flags);
        if (err == cudaSuccess)
            err = cudaEventCreateWithFlags(&c->done[s], flags);
    }
    if (err == cudaSuccess)
        err = cudaHostAlloc((void **)&c->sent, LS_DEVICE_SLOTS * sizeof *c->sent, 0);
    if (err == cudaSuccess)
        err = cudaHostAlloc((void **)&c->losses, LS_DEVICE_SLOTS * sizeof *c->losses, 0);
    return ls_cuda_check(c, err, "make streams and events");
}

static int64_t round_up(int64_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

static bool too_small(LsCuda *c, int64_t want, size_t left, size_t all, LsError *e)
{
    cudaGetLastError();         /* clears the error of the failed allocation */
    return ls_fail(e, LS_EXIT_DEVICE,
                   "%s has %zu of its %zu bytes free, and this program takes %" PRId64
                   ": compile it with a smaller --budget or --batch",
                   c->info.name, left, all, want);
}

static bool take_memory(LsCuda *c, int64_t slot, LsError *e)
{
    LsDevice *d = &c->d;
    const LsProgram *p = d->p;
    int64_t arena = round_up(p->bytes.arena > 0 ? p->bytes.arena : 1), at = 0, beside;
    size_t left = 0, all = 0;
    beside = round_up(p->bytes.state) + round_up(p->bytes.constants)
             + LS_DEVICE_SLOTS * round_up(slot) + round_up(sizeof *c->numbers);
    cudaError_t err = cudaMemGetInfo(&left, &all);
    if (err == cudaSuccess)
        err = cudaMalloc((void **)&d->arena, (size_t)arena);
    if (err == cudaSuccess)
        err = cudaMalloc((void **)&c->memory, (size_t)beside);
    if (err == cudaErrorMemoryAllocation)
        return too_small(c, arena + beside, left, all, e);
    d->state = c->memory + at;
    at += round_up(p->bytes.state);
    d->constant = c->memory + at;
    at += round_up(p->bytes.constants);
    for (int s = 0; s < LS_DEVICE_SLOTS; s++) {
        d->input[s] = c->memory + at;
        at += round_up(slot);
    }
    c->numbers = (LsRun *)(void *)(c->memory + at);
    if (err == cudaSuccess)
        err = cudaMemsetAsync(d->arena, 0, (size_t)arena, c->stream);
    if (err == cudaSuccess)
        err = cudaMemsetAsync(c->memory, 0, (size_t)beside, c->stream);
    if (err == cudaSuccess)
        err = cudaStreamSynchronize(c->stream);
    return ls_cuda_check(c, err, "take memory");
}

static bool open_libraries(LsCuda *c, LsError *e)
{
    LsRun run = {.device = &c->d};
    for (; c->nopen < c->program->nuse; c->nopen++) {
        const LsCudaUse *u = &c->program->use[c->nopen];
        if (!u->library->open(&run, u->data, &c->library[u->library->slot], e))
            return false;
    }
    return true;
}

/* What programs over ranks have more. */
static void give_back_ranks(LsCuda *c)
{
    if (c->messages != NULL)
        cudaStreamDestroy(c->messages);
    if (c->beside != NULL)
        cudaStreamDestroy(c->beside);
    for (uint32_t k = 0; k < c->npoint; k++) {
        cudaEventDestroy(c->point[k]);
        cudaEventDestroy(c->copied[k]);
    }
    free(c->point);
    free(c->copied);
    while (c->ntaken > 0)
        cudaFree(c->taken[--c->ntaken]);
}

static void close_device(LsDevice *d)
{
    LsCuda *c = ls_cuda_of(d);
    if (c->stream != NULL)
        cudaStreamSynchronize(c->stream);
    while (c->nopen > 0) {
        const LsCudaLibrary *l = c->program->use[--c->nopen].library;
        l->close(c->library[l->slot]);
    }
    for (uint32_t k = 0; k < c->nmoment; k++)
        cudaEventDestroy(c->moment[k]);
    free(c->moment);
    free(c->ends.node);
    free(c->ends.of);
    free(c->ends.awaited);
    for (int k = 0; k < 2; k++)
        if (c->lap[k] != NULL)
            cudaEventDestroy(c->lap[k]);
    if (c->image != NULL)
        cudaLibraryUnload(c->image);
    free(c->kernel);
    for (int s = 0; s < LS_DEVICE_SLOTS; s++) {
        if (c->ready[s] != NULL)
            cudaEventDestroy(c->ready[s]);
        if (c->done[s] != NULL)
            cudaEventDestroy(c->done[s]);
    }
    if (c->theirs != NULL)
        cudaEventDestroy(c->theirs);
    if (c->ours != NULL)
        cudaEventDestroy(c->ours);
    if (c->copy != NULL)
        cudaStreamDestroy(c->copy);
    if (c->stream != NULL)
        cudaStreamDestroy(c->stream);
    give_back_ranks(c);
    cudaFreeHost(c->sent);
    cudaFreeHost(c->losses);
    cudaFree(c->memory);
    cudaFree(d->arena);
    free(c);
}

static LsDevice *open_device(const LsProgram *p, int64_t slot, LsError *e)
{
    LsCuda *c = calloc(1, sizeof *c);
    if (c == NULL) {
        ls_fail(e, LS_EXIT_FAIL, "out of memory");
        return NULL;
    }
    c->d.kind = &ls_cuda_device;
    c->d.p = p;
    c->program = p->accelerator.program;
    c->watch = (LsStopwatch){.time = ls_cuda_time, .self = c};
    if (find_device(c, e) && make_order(c) && ls_cuda_load(c, e) && take_memory(c, slot, e)
        && open_libraries(c, e))
        return &c->d;
    ls_device_ok(&c->d, e);
    close_device(&c->d);
    return NULL;
}

/* ---- copies ---- */

static bool read_device(LsDevice *d, void *here, const void *there, int64_t bytes)
{
    LsCuda *c = ls_cuda_of(d);
    cudaError_t err =
        cudaMemcpyAsync(here, there, (size_t)bytes, cudaMemcpyDeviceToHost, c->stream);
    if (err == cudaSuccess)
        err = cudaStreamSynchronize(c->stream);
    return ls_cuda_check(c, err, "read memory");
}

static bool write_device(LsDevice *d, void *there, const void *here, int64_t bytes)
{
    LsCuda *c = ls_cuda_of(d);
    cudaError_t err =
        cudaMemcpyAsync(there, here, (size_t)bytes, cudaMemcpyHostToDevice, c->stream);
    if (err == cudaSuccess)
        err = cudaStreamSynchronize(c->stream);
    return ls_cuda_check(c, err, "write memory");
}

/* If the system does not allow pinned memory, copies are slower but correct. */
static void pin(LsDevice *d, void *here, int64_t bytes)
{
    (void)d;
    if (cudaHostRegister(here, (size_t)bytes, cudaHostRegisterDefault) != cudaSuccess)
        cudaGetLastError();
}

static void unpin(LsDevice *d, void *here)
{
    cudaStreamSynchronize(ls_cuda_of(d)->copy);
    if (cudaHostUnregister(here) != cudaSuccess)
        cudaGetLastError();
}

const LsDeviceKind ls_cuda_device = {
    .open = open_device,
    .close = close_device,
    .read = read_device,
    .write = write_device,
    .holds = ls_cuda_holds,
    .settle = ls_cuda_settle,
    .after = ls_cuda_after,
    .before = ls_cuda_before,
    .pin = pin,
    .unpin = unpin,
    .feed = ls_cuda_feed,
    .fed = ls_cuda_fed,
    .take = ls_cuda_take,
    .begin = ls_cuda_begin,
    .end = ls_cuda_end,
    .loss = ls_cuda_loss,
    .enter = ls_cuda_enter,
    .leave = ls_cuda_leave,
    .record = ls_cuda_record,
    .follow = ls_cuda_follow,
    .recorded = ls_cuda_recorded,
    .replay = ls_cuda_replay,
    .forget = ls_cuda_forget,
    .marks = ls_cuda_marks,
    .mark = ls_cuda_mark,
    .took = ls_cuda_took,
};
