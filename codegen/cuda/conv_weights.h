/* codegen/cuda/conv_weights.h -- weight gradients of 3x3 convolutions in a kernel of our own.
 *
 * cuDNN's engines take the sum over all points as a product whose rows are the taps and channels of one
 * side. Of the 495 TFLOP/s that an H200 multiplies in TF32 they reach 60 to 105 where the other side has
 * few channels, and 120 to 180 with many (docs/gpu.md). Here a block brings each point in once for all
 * taps (runtime/cuda_kernels/ls_cuda_taps.h). */
#ifndef LS_CODEGEN_CONV_WEIGHTS_H
#define LS_CODEGEN_CONV_WEIGHTS_H

#include "codegen/emit/kernel_emit.h"

/* The kernel computes CONV_DW node n, and may be the faster one: in TF32 at stride 1, where blocks of
 * channels and strips of points are mostly full. */
bool ls_conv_weights_serves(const LsGraph *g, LsNodeId n, const LsTarget *t);

/* CONV_DW nodes become CONV_DW_OWN where it does, and there is work for most of a large GPU: how many.
 * Keeps ids of nodes and values. */
uint32_t ls_conv_weights(LsGraph *g, const LsTarget *t);

/* Emitter of CONV_DW_OWN, and of CONV_DW where it serves. */
extern const LsEmitter ls_emitter_conv_weights;

#endif
