/* runtime/cuda/ls_cudnn.h -- convolutions of a program for NVIDIA GPUs, through cuDNN: the
 * interface of generated programs. Plain C.
 *
 * The compiler chose an engine and its workspace for the device that it was told of, and the
 * program carries cuDNN's text of that plan. With the same version of cuDNN and such a device, the
 * plan is used as it is; otherwise another plan is made within the same workspace. That happens in
 * the first run of a convolution, which must be before the step is captured. Later runs allocate
 * nothing and wait for nothing. */
#ifndef LS_CUDNN_H
#define LS_CUDNN_H

#include "runtime/cuda/cudnn_conv_step.h"
#include "runtime/cuda/ls_cuda_run.h"

/* Puts one convolution on the stream of the run. */
void ls_cuda_conv(LsRun *run, const LsCudaConv *c, void *const arg[]);

/* All convolutions of a program, so that they are made ready before the first step. */
typedef struct LsCudaConvUse { const LsCudaConv *conv; const char *node; } LsCudaConvUse;
typedef struct LsCudaConvs { const LsCudaConvUse *use; uint32_t nuse; } LsCudaConvs;

/* Row of LsCudaProgram.use; its data is an LsCudaConvs, or NULL: convolutions are prepared at their
 * first run. */
extern const LsCudaLibrary ls_cudnn;

#endif
