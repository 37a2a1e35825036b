/* codegen/kernels/matmul.h -- the cost of computing an operand within a product's kernel. */
#ifndef LS_CODEGEN_KERNELS_MATMUL_H
#define LS_CODEGEN_KERNELS_MATMUL_H

#include "compiler/ir/graph.h"

/* The times that the product would compute each element of operand `operand` as it packs it; 0: the
 * kernel cannot compute it. *axis: the operand's axis of channels. */
double ls_matmul_computes(const LsGraph *g, LsNodeId n, int operand, int *axis);

#endif
