/* runtime/cuda/cuda_order.c -- the order of work: batches on one stream, steps on another, events
 * between them.
 *
 *     copy    | batch 0 -> slot 0 | batch 1 -> slot 1 |          | batch 2 -> slot 0 |
 *     stream              | numbers, steps, loss of 0  | numbers, steps, loss of 1 | ...
 *
 * A slot's event `ready` lets its steps begin. Its event `done` lets the next batch enter the slot,
 * and tells the host that the loss has arrived. Data from the host lie in pinned memory of the
 * slot, which is overwritten only after `done`. Inputs that lie on the device already are copied on
 * `stream`, between the steps before and the batch's own (cuda_caller.c). */
#include "runtime/cuda/cuda_order.h"

#include "runtime/cuda/cuda_error.h"
#include "runtime/cuda/cuda_ranges.h"
#include "runtime/engine/program_memory.h"

#include <stdlib.h>
#include <string.h>

bool ls_cuda_feed(LsDevice *d, int slot, int64_t at, const void *here, int64_t bytes)
{
    LsCuda *c = ls_cuda_of(d);
    cudaError_t err = cudaStreamWaitEvent(c->copy, c->done[slot], 0);
    if (err == cudaSuccess)
        err = cudaMemcpyAsync(d->input[slot] + at, here, (size_t)bytes, cudaMemcpyHostToDevice,
                              c->copy);
    if (err == cudaSuccess)
        err = cudaEventRecord(c->ready[slot], c->copy);
    return ls_cuda_check(c, err, "copy a batch to the device");
}

bool ls_cuda_fed(LsDevice *d, int slot)
{
    LsCuda *c = ls_cuda_of(d);
    return ls_cuda_check(c, cudaEventSynchronize(c->ready[slot]), "copy a batch to the device");
}

bool ls_cuda_begin(LsDevice *d, int slot, const LsRun *run)
{
    LsCuda *c = ls_cuda_of(d);
    cudaError_t err = cudaEventSynchronize(c->done[slot]);
    if (err == cudaSuccess)
        err = cudaStreamWaitEvent(c->stream, c->ready[slot], 0);
    if (err == cudaSuccess) {
        c->sent[slot] = *run;
        err = cudaMemcpyAsync(c->numbers, &c->sent[slot], sizeof *run, cudaMemcpyHostToDevice,
                              c->stream);
    }
    return ls_cuda_check(c, err, "begin a step");
}

bool ls_cuda_end(LsDevice *d, int slot, const void *loss, const void *weight)
{
    LsCuda *c = ls_cuda_of(d);
    size_t bytes = (size_t)d->p->real_bytes;
    double *to = c->losses[slot];
    cudaError_t err = cudaSuccess;
    if (loss != NULL)
        err = cudaMemcpyAsync(&to[0], loss, bytes, cudaMemcpyDeviceToHost, c->stream);
    c->weighed[slot] = weight != NULL;
    if (err == cudaSuccess && weight != NULL)
        err = cudaMemcpyAsync(&to[1], weight, bytes, cudaMemcpyDeviceToHost, c->stream);
    if (err == cudaSuccess)
        err = cudaEventRecord(c->done[slot], c->stream);
    return ls_cuda_check(c, err, "end a step");
}

bool ls_cuda_loss(LsDevice *d, int slot, double *loss, double *weight)
{
    LsCuda *c = ls_cuda_of(d);
    d->update = c->sent[slot].update;   /* a failure from here on belongs to that step or the next
                                         * one */
    if (!ls_cuda_check(c, cudaEventSynchronize(c->done[slot]), "run the step"))
        return false;
    *loss = ls_real_at(&c->losses[slot][0], d->p->real_bytes);
    if (c->weighed[slot])
        *weight = ls_real_at(&c->losses[slot][1], d->p->real_bytes);
    return true;
}

void ls_cuda_enter(LsDevice *d, const char *name)
{
    (void)d;
    nvtxRangePushA(name);
}

void ls_cuda_leave(LsDevice *d)
{
    nvtxRangePop();
    ls_cuda_check(ls_cuda_of(d), cudaPeekAtLastError(), "run it");
}

bool ls_cuda_marks(LsDevice *d, uint32_t n)
{
    LsCuda *c = ls_cuda_of(d);
    c->moment = calloc(n + 1, sizeof *c->moment);
    if (c->moment == NULL)
        return ls_device_fail(d, LS_EXIT_FAIL, "out of memory");
    for (; c->nmoment < n; c->nmoment++)
        if (!ls_cuda_check(c, cudaEventCreate(&c->moment[c->nmoment]), "make an event"))
            return false;
    return true;
}

void ls_cuda_mark(LsDevice *d, uint32_t k)
{
    LsCuda *c = ls_cuda_of(d);
    unsigned flags = c->recording ? cudaEventRecordExternal : cudaEventRecordDefault;
    ls_cuda_check(c, cudaEventRecordWithFlags(c->moment[k], c->stream, flags), "note a time");
}

int64_t ls_cuda_took(LsDevice *d, uint32_t a, uint32_t b)
{
    LsCuda *c = ls_cuda_of(d);
    float ms = 0;
    /* The event is not enough: until a replay reaches it, the event is that of the replay
     * before. */
    cudaError_t err = cudaStreamSynchronize(c->stream);
    if (err == cudaSuccess)
        err = cudaEventElapsedTime(&ms, c->moment[a], c->moment[b]);
    ls_cuda_check(c, err, "read a time");
    return (int64_t)((double)ms * 1e6);
}
