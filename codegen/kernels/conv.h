/* codegen/kernels/conv.h -- what computing an operand within a convolution's kernel costs. */
#ifndef LS_CODEGEN_KERNELS_CONV_H
#define LS_CODEGEN_KERNELS_CONV_H

#include "compiler/ir/graph.h"

/* How often each element of operand `operand` would be computed where the convolution packs it;
 * *axis: the operand's axis of channels. 0: the kernel cannot compute it. */
double ls_conv_computes(const LsGraph *g, LsNodeId n, int operand, int *axis);

#endif
