/* codegen/kernels/matmul.h -- what computing an operand within a product's kernel costs. */
#ifndef LS_CODEGEN_KERNELS_MATMUL_H
#define LS_CODEGEN_KERNELS_MATMUL_H

#include "compiler/ir/graph.h"

/* How often each element of operand `operand` would be computed where the product packs it;
 * *axis: the operand's axis of channels. 0: the kernel cannot compute it. */
double ls_matmul_computes(const LsGraph *g, LsNodeId n, int operand, int *axis);

#endif
