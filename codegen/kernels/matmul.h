/* codegen/kernels/matmul.h -- the cost of computing an operand within a product's kernel; sums of
 * squares. */
#ifndef LS_CODEGEN_KERNELS_MATMUL_H
#define LS_CODEGEN_KERNELS_MATMUL_H

#include "codegen/emit/kernel_emit.h"

/* The times that the product would compute each element of operand `operand` as it packs it; 0: the
 * kernel cannot compute it. *axis: the operand's axis of channels. */
double ls_matmul_computes(const LsGraph *g, LsNodeId n, int operand, int *axis);

/* Whether the product's sum over k terms can go on with the term `at` (k: behind all), with the
 * bits of the whole sum on every processor: as a block ends there; dot16: of bfloat16 factors. */
bool ls_matmul_block_ends(int real_bytes, bool dot16, int64_t k, int64_t at);

/* Prints NAME_sum, one unit: result 0 is `norms` sums of as many partial sums, one behind the other
 * in the workspace. parts: their number, an expression. */
void ls_squares_emit_sum(const LsKernelText *k, int64_t norms, const char *parts);

#endif
