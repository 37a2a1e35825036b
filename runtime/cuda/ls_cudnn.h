/* runtime/cuda/ls_cudnn.h -- convolutions of a program for NVIDIA GPUs, through cuDNN: what the
 * program says. Plain C.
 *
 * The compiler chose an engine and its workspace for a device that it was told of, and the program
 * carries cuDNN's text of that plan. Where cuDNN has the same version and the device is such a one,
 * the plan is taken as it is; elsewhere another is made within the same workspace. That happens
 * when a convolution first runs, which must be before the step is captured; after that it allocates
 * nothing and waits for nothing. */
#ifndef LS_CUDNN_H
#define LS_CUDNN_H

#include "runtime/cuda/cudnn_shape.h"
#include "runtime/cuda/ls_cuda_run.h"

typedef struct LsCudaConv {
    LsDnnConv conv;
    LsDnnRules rules;           /* compiled: such engines serve only what is more than a
                                 * convolution */
    /* Places among the arguments of the step; -1: none. */
    int arg_x, arg_w, arg_y, arg_bias, arg_mask, arg_workspace;
    int64_t workspace;          /* bytes at arg_workspace: ls_conv_room of what the plan needs */
    const char *plan;           /* cuDNN's text of it; NULL: the compiler had no cuDNN */
    bool alone;                 /* the plan is that of the convolution alone: whether an engine does
                                 * more, which it compiles, shows when the program starts */
    /* A kernel that does the rest of conv in place, where no engine does; NULL: there is no rest. */
    void (*behind)(LsRun *run, void *const arg[]);
    /* A kernel of the program that computes all of it, to be timed beside cuDNN's; NULL: none. */
    void (*own)(LsRun *run, void *const arg[]);
} LsCudaConv;

/* Puts one convolution on the stream of the run. */
void ls_cuda_conv(LsRun *run, const LsCudaConv *c, void *const arg[]);

/* All convolutions of a program, so that they are made ready before the first step. */
typedef struct LsCudaConvUse { const LsCudaConv *conv; const char *node; } LsCudaConvUse;
typedef struct LsCudaConvs { const LsCudaConvUse *use; uint32_t nuse; } LsCudaConvs;

/* Row of LsCudaProgram.use; its data is an LsCudaConvs, or NULL: made ready when they first run. */
extern const LsCudaLibrary ls_cudnn;

#endif
