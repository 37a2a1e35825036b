/* runtime/cuda/cuda_launch.c -- loads the program's own kernels at the start, and launches them by
 * number. */
#include "runtime/cuda/cuda_launch.h"

#include "runtime/cuda/cuda_error.h"
#include "runtime/cuda/cuda_image.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool cannot_load(LsCuda *c, cudaError_t err, LsError *e)
{
    const LsCudaInfo *i = &c->info;
    if (err == cudaErrorNoKernelImageForDevice || err == cudaErrorInvalidKernelImage
        || err == cudaErrorUnsupportedPtxVersion)
        return ls_fail(
            e, LS_EXIT_DEVICE,
            "this program has code for %s, and the device is sm_%d%d (%s, driver for CUDA "
            "%d.%d): compile again with --arch=%d%d",
            c->program->archs, i->major, i->minor, i->name, i->driver / 1000, i->driver % 1000 / 10,
            i->major, i->minor);
    return ls_fail(e, LS_EXIT_DEVICE, "cannot load the device code on %s: %s", i->name,
                   cudaGetErrorString(err));
}

bool ls_cuda_load(LsCuda *c, LsError *e)
{
    const LsCudaProgram *p = c->program;
    const void *image = ls_cuda_image_choose(p->fatbin, c->info.major, c->info.minor);
    cudaError_t err = cudaErrorNoKernelImageForDevice;
    if (image != NULL)
        err = cudaLibraryLoadData(&c->image, image, NULL, NULL, 0, NULL, NULL, 0);
    if (err != cudaSuccess)
        return cannot_load(c, err, e);
    c->kernel = calloc(p->npart + 1, sizeof *c->kernel);
    if (c->kernel == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (uint32_t k = 0; k < p->npart; k++) {
        err = cudaLibraryGetKernel(&c->kernel[k], c->image, p->part[k].name);
        if (err == cudaErrorNoKernelImageForDevice)
            return cannot_load(c, err, e);
        if (err != cudaSuccess)
            return ls_fail(e, LS_EXIT_DEVICE, "kernel %s is not in the device code: %s",
                           p->part[k].name, cudaGetErrorString(err));
    }
    return true;
}

void ls_cuda_launch(LsRun *run, uint32_t part, int64_t units, void *const arg[])
{
    LsCuda *c = ls_cuda_of(run->device);
    const LsCudaPart *p = &c->program->part[part];
    /* The program's table of arguments has the layout of the kernel's argument struct. */
    void *parameter[] = {&c->numbers, (void *)arg};
    char what[160];
    if (units <= 0)
        return;
    if (units > INT32_MAX) {
        ls_cuda_fail(run, LS_EXIT_DEVICE, "%s has %" PRId64 " blocks, a device takes %d", p->name,
                     units, INT32_MAX);
        return;
    }
    cudaError_t err = cudaLaunchKernel((const void *)c->kernel[part], (dim3){(unsigned)units, 1, 1},
                                       (dim3){p->x, p->y, 1}, parameter, 0, c->stream);
    if (err != cudaSuccess) {
        snprintf(what, sizeof what, "launch %s", p->name);
        ls_cuda_check(c, err, what);
    }
}

void ls_cuda_launch_with(LsRun *run, uint32_t part, int64_t units, void *const arg[], int narg,
                         const int64_t number[], int n)
{
    const LsCudaPart *p = &ls_cuda_of(run->device)->program->part[part];
    void *all[LS_CUDA_ARGS] = {0};
    if (narg + n > p->narg || p->narg > LS_CUDA_ARGS) {
        ls_cuda_fail(run, LS_EXIT_DEVICE, "%s has %d arguments", p->name, p->narg);
        return;
    }
    memcpy(all, arg, (size_t)narg * sizeof *all);
    for (int k = 0; k < n; k++)
        all[p->narg - n + k] = (void *)(intptr_t)number[k];
    ls_cuda_launch(run, part, units, all);
}
