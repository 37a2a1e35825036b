/* runtime/cuda/ls_cublaslt.c -- products as steps of a program: binds cuBLASLt to the CUDA
 * context. */
#include "runtime/cuda/ls_cublaslt.h"

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/ls_cuda_context.h"
#include "runtime/cuda/plan_cache.h"

static bool open_library(LsRun *run, const void *data, void **self, LsError *e)
{
    char folder[4096];
    LsCublas *b = NULL;
    const LsCublasSetup setup = {.device = ls_cuda_info(run)->name,
                                 .cache = ls_plan_cache_folder(folder, sizeof folder),
                                 .notes = ls_cuda_notes(run)};
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
    if (!ls_cublas_multiply(b, run, p, arg, ls_cuda_node(run), ls_cuda_stream(run), &e))
        ls_cuda_fail(run, e.code, "%s", e.text);
}
