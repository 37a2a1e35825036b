/* tests/support/tiny_cuda.h -- the program of tiny_program.h for a device: the same functions as
 * kernels of the fake CUDA runtime. Included by it when LS_TINY_CUDA is defined. */
#ifndef LS_TESTS_SUPPORT_TINY_CUDA_H
#define LS_TESTS_SUPPORT_TINY_CUDA_H

#include "runtime/cuda/ls_cuda_run.h"
#include "tests/support/fake_cudart.h"

#include <stdlib.h>

/* As a kernel; by the blocks that were launched, or as one. */
#define TINY_KERNEL(name, call)                                                                    \
    static void name##_kernel(const FakeKernel *k, const LsRun *on_device, void *const arg[],      \
                              int64_t blocks)                                                      \
    {                                                                                              \
        LsRun copy = *on_device, *run = &copy;                                                     \
        (void)k, (void)blocks, (void)run;                                                          \
        copy.pool = NULL;                                                                          \
        call;                                                                                      \
    }
TINY_KERNEL(tiny_logits, tiny_logits_part(run, arg, 0, blocks))
TINY_KERNEL(tiny_loss, tiny_loss(run, arg))
TINY_KERNEL(tiny_grad, tiny_grad(run, arg))
TINY_KERNEL(tiny_update_w, tiny_update_w(run, arg))
TINY_KERNEL(tiny_update_b, tiny_update_b(run, arg))

static const FakeKernel tiny_kernel[] = {
    {"logits_part", 4, tiny_logits_kernel, NULL},
    {"loss_part", 4, tiny_loss_kernel, NULL},
    {"grad_part", 5, tiny_grad_kernel, NULL},
    {"update_w_part", 4, tiny_update_w_kernel, NULL},
    {"update_b_part", 6, tiny_update_b_kernel, NULL},
};
static const LsCudaPart tiny_part[] = {{"logits_part", 4, 32, 1}, {"loss_part", 4, 1, 1},
                                       {"grad_part", 5, 1, 1},    {"update_w_part", 4, 1, 1},
                                       {"update_b_part", 6, 1, 1}};
static const LsCudaProgram tiny_cuda = {.fatbin =
                                            (const unsigned char *)"FAKE CODE, as long as a head",
                                        .archs = "sm_90",
                                        .part = tiny_part,
                                        .npart = 5};

static void launch_logits(LsRun *run, void *const arg[]) { ls_cuda_launch(run, 0, TB, arg); }
static void launch_loss(LsRun *run, void *const arg[]) { ls_cuda_launch(run, 1, 1, arg); }
static void launch_grad(LsRun *run, void *const arg[]) { ls_cuda_launch(run, 2, 1, arg); }
static void launch_update_w(LsRun *run, void *const arg[]) { ls_cuda_launch(run, 3, 1, arg); }
static void launch_update_b(LsRun *run, void *const arg[]) { ls_cuda_launch(run, 4, 1, arg); }

/* p, whose steps launch. LS_FAKE_CUDART=lazy says how the fake runtime works. */
static inline LsProgram tiny_on_device(LsProgram p)
{
    static const LsKernel launch[] = {launch_logits, launch_loss, launch_grad, launch_update_w,
                                      launch_update_b};
    static LsStep train[5], eval[2];
    const char *mode = getenv("LS_FAKE_CUDART");
    for (int k = 0; k < 5; k++) {
        train[k] = p.phase.train.step[k];
        train[k].run = launch[k];
    }
    for (int k = 0; k < 2; k++) {
        eval[k] = p.phase.eval.step[k];
        eval[k].run = launch[k];
    }
    p.phase.train.step = train;
    p.phase.eval.step = eval;
    p.accelerator.kind = &ls_cuda_device;
    p.accelerator.program = &tiny_cuda;
    fake_cudart.kernel = tiny_kernel;
    fake_cudart.nkernel = 5;
    fake_cudart.lazy = mode != NULL && strcmp(mode, "lazy") == 0;
    return p;
}

#endif
