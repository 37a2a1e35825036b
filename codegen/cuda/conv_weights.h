/* codegen/cuda/conv_weights.h -- weight gradients of 3x3 convolutions in a generated kernel.
 *
 * cuDNN's engines compute the sum over all points as an implicit GEMM whose rows are the taps and
 * channels of one side. They reach 60 to 105 of an H200's 495 TFLOP/s in TF32 if the other side has
 * few channels, and 120 to 180 if it has many (docs/lab/gpu.md). Here a block loads each point once
 * for all taps (runtime/cuda_kernels/ls_cuda_taps.h). */
#ifndef LS_CODEGEN_CONV_WEIGHTS_H
#define LS_CODEGEN_CONV_WEIGHTS_H

#include "codegen/emit/kernel_emit.h"

/* Whether the kernel computes CONV_DW node n and may be faster than cuDNN: TF32, stride 1, and
 * mostly full blocks of channels and strips of points. */
bool ls_conv_weights_serves(const LsGraph *g, LsNodeId n, const LsTarget *t);

/* Emitter of CONV_DW nodes that the kernel serves: programs compare it with cuDNN (--tune). */
extern const LsEmitter ls_emitter_conv_weights;

#endif
