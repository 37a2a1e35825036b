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

#include "runtime/cuda/cudnn_conv_step.h"
#include "runtime/cuda/ls_cuda_run.h"

/* Puts one convolution on the stream of the run. */
void ls_cuda_conv(LsRun *run, const LsCudaConv *c, void *const arg[]);

/* All convolutions of a program, so that they are made ready before the first step. */
typedef struct LsCudaConvUse { const LsCudaConv *conv; const char *node; } LsCudaConvUse;
typedef struct LsCudaConvs { const LsCudaConvUse *use; uint32_t nuse; } LsCudaConvs;

/* Row of LsCudaProgram.use; its data is an LsCudaConvs, or NULL: made ready when they first run. */
extern const LsCudaLibrary ls_cudnn;

#endif
