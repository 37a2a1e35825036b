/* codegen/cuda/widen.h -- rows of scores that begin at multiples of 16 bytes.
 *
 * Tensor cores want that of every matrix: where the number of classes is no multiple of four
 * (GPT-2's 50257), cuBLASLt has only old kernels for the product that makes the scores and for both
 * gradients of it, on an H200 at a third of the speed. So the scores and their gradient get some
 * columns more than there are classes, which no other kernel reads; in the gradient they are 0. Where
 * the weights lie class by class, rows of zeros behind them make the products as wide. */
#ifndef LS_CODEGEN_CUDA_WIDEN_H
#define LS_CODEGEN_CUDA_WIDEN_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Widens the scores that one product makes and only a cross-entropy reads, and their gradient where
 * only products read it: how many. Last of all that changes the graph: shapes are not inferred again
 * after it. LsValue.columns of what was widened says how many columns count. */
uint32_t ls_widen_scores(LsGraph *g, const LsTarget *t);

#endif
