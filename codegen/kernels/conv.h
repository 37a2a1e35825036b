/* codegen/kernels/conv.h -- the cost of computing an operand within a convolution's kernel. */
#ifndef LS_CODEGEN_KERNELS_CONV_H
#define LS_CODEGEN_KERNELS_CONV_H

#include "compiler/ir/graph.h"

/* The times that the convolution would compute each element of operand `operand` as it packs it; 0:
 * the kernel cannot compute it. *axis: the operand's axis of channels. */
double ls_conv_computes(const LsGraph *g, LsNodeId n, int operand, int *axis);

#endif
