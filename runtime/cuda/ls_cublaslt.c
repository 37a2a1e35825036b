/* runtime/cuda/ls_cublaslt.c -- products as steps of a program: the library's place in the CUDA
 * context. */
#include "runtime/cuda/ls_cublaslt.h"

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/ls_cuda_context.h"

#include <stdio.h>
#include <stdlib.h>

/* Where choices are kept: $XDG_CACHE_HOME/lowerset, or ~/.cache/lowerset; NULL: nowhere. */
static const char *cache_folder(char *text, size_t room)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache != NULL && *cache == '/')
        snprintf(text, room, "%s/lowerset", cache);
    else if (home != NULL && *home == '/')
        snprintf(text, room, "%s/.cache/lowerset", home);
    else
        return NULL;
    return text;
}

static bool open_library(LsRun *run, const void *data, void **self, LsError *e)
{
    char folder[4096];
    LsCublas *b = NULL;
    const LsCublasSetup setup = {.device = ls_cuda_info(run)->name,
                                 .cache = cache_folder(folder, sizeof folder)};
    (void)data;
    if (!ls_cublas_open(&b, &setup, e))
        return false;
    *self = b;
    return true;
}

static void close_library(void *self) { ls_cublas_close(self); }

const LsCudaLibrary ls_cublaslt = {
    .slot = LS_CUDA_CUBLASLT, .open = open_library, .close = close_library};

void ls_cuda_matmul(LsRun *run, const LsCudaMatmul *p, void *const arg[])
{
    LsError e = {0};
    LsCublas *b = ls_cuda_library(run, LS_CUDA_CUBLASLT);
    ls_cublas_tune(b, ls_cuda_tuning(run));
    if (!ls_cublas_multiply(b, p, arg, ls_cuda_stream(run), &e))
        ls_cuda_fail(run, e.code, "%s", e.text);
}
