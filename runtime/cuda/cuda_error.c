/* runtime/cuda/cuda_error.c -- see cuda_error.h. */
#include "runtime/cuda/cuda_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool ls_cuda_check(LsCuda *c, cudaError_t err, const char *what)
{
    if (err == cudaSuccess)
        return true;
    bool late = c->d.at == NULL && c->d.update > 0
                && (err == cudaErrorIllegalAddress || err == cudaErrorLaunchFailure
                    || err == cudaErrorMisalignedAddress || err == cudaErrorIllegalInstruction
                    || err == cudaErrorLaunchTimeout);
    return ls_device_fail(&c->d, LS_EXIT_DEVICE, "cannot %s on %s: %s (%s)%s", what, c->info.name,
                          cudaGetErrorString(err), cudaGetErrorName(err),
                          late ? "; --check-numerics runs node by node and names the failing node"
                               : "");
}

bool ls_cuda_none(cudaError_t err, LsError *e)
{
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0)
        return ls_fail(
            e, LS_EXIT_DEVICE,
            "this program runs on an NVIDIA GPU, and there is no NVIDIA "
            "driver here (libcuda.so.1); compile with --target=cpu to train without one");
    if (err == cudaErrorInsufficientDriver)
        return ls_fail(e, LS_EXIT_DEVICE,
                       "the NVIDIA driver is too old: it is for CUDA %d.%d, this "
                       "program is built with CUDA %d.%d",
                       driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (err == cudaErrorNoDevice || err == cudaSuccess)
        return ls_fail(e, LS_EXIT_DEVICE, "there is an NVIDIA driver here, but no GPU%s%s",
                       getenv("CUDA_VISIBLE_DEVICES") ? " among CUDA_VISIBLE_DEVICES=" : "",
                       getenv("CUDA_VISIBLE_DEVICES") ? getenv("CUDA_VISIBLE_DEVICES") : "");
    return ls_fail(e, LS_EXIT_DEVICE, "cannot use the GPU: %s (%s)", cudaGetErrorString(err),
                   cudaGetErrorName(err));
}

void ls_cuda_fail(LsRun *run, LsExit code, const char *fmt, ...)
{
    char what[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    ls_device_fail(run->device, code, "%s", what);
}

bool ls_cuda_ok(LsRun *run, cudaError_t err, const char *what)
{
    return ls_cuda_check(ls_cuda_of(run->device), err, what);
}
