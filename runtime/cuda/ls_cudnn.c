/* runtime/cuda/ls_cudnn.c -- convolutions as steps of a program: binds cuDNN to the CUDA
 * context. */
#include "runtime/cuda/ls_cudnn.h"

#include "runtime/cuda/cudnn_run.h"
#include "runtime/cuda/ls_cuda_context.h"
#include "runtime/cuda/plan_cache.h"

static bool open_library(LsRun *run, const void *data, void **self, LsError *e)
{
    const LsCudaConvs *all = data;
    char folder[4096];
    LsDnnRuns *r = NULL;
    const LsDnnSetup setup = {.device = ls_cuda_info(run)->device,
                              .cache = ls_plan_cache_folder(folder, sizeof folder),
                              .notes = ls_cuda_notes(run)};
    if (!ls_dnn_runs_open(&r, &setup, e))
        return false;
    *self = r;
    for (uint32_t k = 0; all != NULL && k < all->nuse; k++)
        if (!ls_dnn_ready(r, all->use[k].conv, all->use[k].node, e)) {
            ls_dnn_runs_close(r);
            return false;
        }
    return true;
}

static void close_library(void *self) { ls_dnn_runs_close(self); }

const LsCudaLibrary ls_cudnn = {
    .slot = LS_CUDA_CUDNN, .open = open_library, .close = close_library};

void ls_cuda_conv(LsRun *run, const LsCudaConv *c, void *const arg[])
{
    LsError e = {0};
    LsDnnRuns *r = ls_cuda_library(run, LS_CUDA_CUDNN);
    ls_dnn_tune(r, ls_cuda_tuning(run));
    if (!ls_dnn_run(r, run, c, arg, ls_cuda_stream(run), &e))
        ls_cuda_fail(run, e.code, "%s", e.text);
}
