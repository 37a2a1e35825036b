/* codegen/cuda/conv_fuse.h -- what cuDNN does behind a convolution in the same kernel. */
#ifndef LS_CODEGEN_CONV_FUSE_H
#define LS_CODEGEN_CONV_FUSE_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Where a ReLU is all that reads a convolution with a bias, and an engine of cuDNN does both and the
 * bias, the convolution makes the ReLU's result (LsWindowAttr.relu) and the ReLU becomes NOP. Done
 * before plans are made, by shapes alone, so that every budget computes with the same engines.
 * Nothing for other targets. Keeps ids of nodes and values; how many were taken in. */
uint32_t ls_conv_fuse(LsGraph *g, const LsTarget *t);

/* Where a ReLU's gradient is all that reads a data gradient, and an engine of cuDNN does both
 * (ls_conv_takes_mask), the convolution does it: the ReLU's result becomes its operand LS_CONV_MASK,
 * and the loop that held the gradient begins with its result. Done when ls_conv_fuse is. requires a
 * fused graph without alternatives; how many were taken in. */
uint32_t ls_conv_fuse_gradients(LsCtx *cx, LsGraph *g, const LsTarget *t);

#endif
