/* codegen/cuda/conv_weights.h -- weight gradients of 3x3 convolutions in a kernel of our own.
 *
 * cuDNN's engines take the sum over all points as a product whose rows are the taps and channels of one
 * side; where the other side has few channels, they reach 60 to 105 TFLOP/s of the 495 that an H200
 * multiplies in TF32 (docs/gpu.md). Here a block brings each point in once for all taps
 * (runtime/ls_cuda_taps.h). */
#ifndef LS_CODEGEN_CONV_WEIGHTS_H
#define LS_CODEGEN_CONV_WEIGHTS_H

#include "codegen/target.h"
#include "compiler/graph.h"

/* CONV_DW nodes become CONV_DW_OWN where the kernel serves and one side has few channels: how many.
 * TF32 alone, at stride 1. Keeps ids of nodes and values. */
uint32_t ls_conv_weights(LsGraph *g, const LsTarget *t);

#endif
