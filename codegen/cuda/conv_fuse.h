/* codegen/cuda/conv_fuse.h -- epilogues that cuDNN does in a convolution's kernel. */
#ifndef LS_CODEGEN_CONV_FUSE_H
#define LS_CODEGEN_CONV_FUSE_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Fuses a ReLU into a convolution with a bias, if the ReLU alone reads it and an engine of cuDNN
 * does all three: the convolution makes the ReLU's result (LsWindowAttr.relu) and the ReLU becomes
 * NOP. Runs before planning and looks at shapes alone, so every budget computes with the same
 * engines. Does nothing for other targets. Keeps ids of nodes and values; returns the ReLUs
 * fused. */
uint32_t ls_conv_fuse(LsGraph *g, const LsTarget *t);

/* Fuses a ReLU's gradient into a data gradient, if it alone reads the data gradient and an engine
 * of cuDNN does both (ls_conv_takes_mask): the ReLU's result becomes the convolution's operand
 * LS_CONV_MASK, and the loop that computed the ReLU's gradient reads the convolution's result. Runs
 * when ls_conv_fuse does. Requires a fused graph without alternatives; returns the gradients
 * fused. */
uint32_t ls_conv_fuse_gradients(LsCtx *cx, LsGraph *g, const LsTarget *t);

#endif
