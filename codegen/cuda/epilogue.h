/* codegen/cuda/epilogue.h -- epilogues that cuBLASLt does in a product's kernel. */
#ifndef LS_CODEGEN_CUDA_EPILOGUE_H
#define LS_CODEGEN_CUDA_EPILOGUE_H

#include "compiler/ir/graph.h"

/* Moves into products (LsThen): a ReLU or a GELU by tanh that alone reads the result, the gradient
 * of such a GELU, a sum with another tensor, and the sums of a factor's rows that are a bias'
 * gradient. Requires a fused graph without alternatives; a moved node leaves a view. */
void ls_cuda_epilogues(LsCtx *cx, LsGraph *g);

#endif
