/* runtime/cuda/cuda_error.c -- see cuda_error.h. */
#include "runtime/cuda/cuda_error.h"

#include <stdarg.h>
#include <stdio.h>

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
                          late ? "; --check-numerics runs node by node and names the failing node" : "");
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
