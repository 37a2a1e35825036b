/* runtime/cuda/cuda_caller.c -- see the header.
 *
 *     caller  | writes x |                                      | reads the loss | writes x |
 *     stream             | x -> slot 0 | numbers, steps of 0 |
 *
 * An event leads from the caller's stream to the steps, and one back. The host waits for neither:
 * so x may be written again, or given back to an allocator that goes by streams, once the call
 * returns. */
#include "runtime/cuda/cuda_caller.h"

#include "runtime/cuda/cuda_error.h"

bool ls_cuda_holds(LsDevice *d, const void *at)
{
    struct cudaPointerAttributes of;
    (void)d;
    if (cudaPointerGetAttributes(&of, at) != cudaSuccess) {
        cudaGetLastError();             /* of memory that CUDA does not know: the host's */
        return false;
    }
    return of.type == cudaMemoryTypeDevice;
}

bool ls_cuda_settle(LsDevice *d)
{
    return ls_cuda_check(ls_cuda_of(d), cudaDeviceSynchronize(), "wait for the caller's work");
}

/* ---- the caller's stream ---- */

/* CUDA's default stream, which PyTorch calls 0. This file's own default may be another one. */
static cudaStream_t stream_of(void *given) { return given != NULL ? given : cudaStreamLegacy; }

static cudaError_t make_events(LsCuda *c)
{
    cudaError_t err = cudaSuccess;
    if (c->theirs == NULL)
        err = cudaEventCreateWithFlags(&c->theirs, cudaEventDisableTiming);
    if (err == cudaSuccess && c->ours == NULL)
        err = cudaEventCreateWithFlags(&c->ours, cudaEventDisableTiming);
    return err;
}

bool ls_cuda_after(LsDevice *d, void *stream, LsError *e)
{
    LsCuda *c = ls_cuda_of(d);
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (!ls_cuda_check(c, make_events(c), "make events"))
        return ls_device_ok(d, e);
    cudaError_t err = cudaStreamIsCapturing(stream_of(stream), &status);
    if (err == cudaSuccess && status != cudaStreamCaptureStatusNone)
        return ls_fail(e, LS_EXIT_USAGE,
                       "the stream is being captured: a step takes numbers from the host, and can "
                       "be no part of a graph; it is one graph by itself");
    if (err == cudaSuccess)
        err = cudaEventRecord(c->theirs, stream_of(stream));
    if (err != cudaSuccess) {
        cudaGetLastError();
        return ls_fail(e, LS_EXIT_USAGE,
                       "this is no stream of the GPU that the net lies on, %s: %s", c->info.name,
                       cudaGetErrorString(err));
    }
    return ls_cuda_check(c, cudaStreamWaitEvent(c->stream, c->theirs, 0),
                         "wait for the caller's stream")
           || ls_device_ok(d, e);
}

bool ls_cuda_before(LsDevice *d, void *stream)
{
    LsCuda *c = ls_cuda_of(d);
    cudaError_t err = cudaEventRecord(c->ours, c->stream);
    if (err == cudaSuccess)
        err = cudaStreamWaitEvent(stream_of(stream), c->ours, 0);
    return ls_cuda_check(c, err, "let the caller's stream wait");
}

/* ---- inputs on the GPU ---- */

/* Elements of `bytes` bytes, [slices][height]: a stride from one to the next, and as many of these
 * strides from a slice to the next. */
typedef struct Strided { const char *at; int64_t stride, apart; } Strided;

static struct cudaPitchedPtr pitched(Strided s, int64_t bytes)
{
    return (struct cudaPitchedPtr){.ptr = (void *)(uintptr_t)s.at,
                                   .pitch = (size_t)s.stride,
                                   .xsize = (size_t)bytes,
                                   .ysize = (size_t)s.apart};
}

static cudaError_t copy_strided(LsCuda *c, Strided to, Strided from, int64_t bytes, int64_t height,
                                int64_t slices)
{
    const struct cudaMemcpy3DParms all = {
        .srcPtr = pitched(from, bytes),
        .dstPtr = pitched(to, bytes),
        .extent = {(size_t)bytes, (size_t)height, (size_t)slices},
        .kind = cudaMemcpyDeviceToDevice,
    };
    return cudaMemcpy3DAsync(&all, c->stream);
}

/* Channels go behind places: a copy for each channel or for each place, whichever are fewer. */
static cudaError_t copy_turned(LsCuda *c, const LsDeviceCopy *x)
{
    const int64_t row = x->channels * x->places, b = x->bytes, rows = x->samples * x->rows;
    cudaError_t err = cudaSuccess;
    if (x->channels <= x->places)
        for (int64_t k = 0; k < x->channels && err == cudaSuccess; k++)
            err = copy_strided(c, (Strided){x->to + k * b, x->channels * b, x->places},
                               (Strided){x->from + k * x->places * b, b, row}, b, x->places, rows);
    else
        for (int64_t k = 0; k < x->places && err == cudaSuccess; k++)
            err = copy_strided(c, (Strided){x->to + k * x->channels * b, b, row},
                               (Strided){x->from + k * b, x->places * b, x->channels}, b,
                               x->channels, rows);
    return err;
}

bool ls_cuda_take(LsDevice *d, const LsDeviceCopy *x)
{
    LsCuda *c = ls_cuda_of(d);
    const int64_t sample = x->rows * x->channels * x->places * x->bytes;
    cudaError_t err = x->channels > 1 && x->places > 1
                          ? copy_turned(c, x)
                          : cudaMemcpyAsync(x->to, x->from, (size_t)(x->samples * sample),
                                            cudaMemcpyDeviceToDevice, c->stream);
    /* Samples of a short batch fill it up, in turn: as many again as there are, each time. */
    for (int64_t n = x->samples; n < x->of && err == cudaSuccess; n *= 2)
        err = cudaMemcpyAsync(x->to + n * sample, x->to,
                              (size_t)((n < x->of - n ? n : x->of - n) * sample),
                              cudaMemcpyDeviceToDevice, c->stream);
    return ls_cuda_check(c, err, "copy an input on the device");
}
