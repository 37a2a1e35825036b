/* codegen/cuda/conv_fuse.h -- what cuDNN does behind a convolution in the same kernel. */
#ifndef LS_CODEGEN_CONV_FUSE_H
#define LS_CODEGEN_CONV_FUSE_H

#include "codegen/target.h"
#include "compiler/graph.h"

/* Where a ReLU is all that reads a convolution with a bias, and an engine of cuDNN does both and the
 * bias, the convolution makes the ReLU's result (LsWindowAttr.relu) and the ReLU becomes NOP. Done
 * before plans are made, by shapes alone, so that every budget computes with the same engines.
 * Nothing for other targets. Keeps ids of nodes and values; how many were taken in. */
uint32_t ls_conv_fuse(LsGraph *g, const LsTarget *t);

#endif
