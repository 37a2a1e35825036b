/* codegen/cuda/epilogue.h -- what cuBLASLt does in a product's kernel instead of in one of its
 * own. */
#ifndef LS_CODEGEN_CUDA_EPILOGUE_H
#define LS_CODEGEN_CUDA_EPILOGUE_H

#include "compiler/ir/graph.h"

/* Moves into products (LsThen): a ReLU or a GELU by tanh that is all that reads the result, the
 * gradient of such a GELU, a sum with another tensor, and the sums of a factor's rows that are a bias'
 * gradient. requires a fused graph without alternatives; what was moved leaves a view. */
void ls_cuda_epilogues(LsCtx *cx, LsGraph *g);

#endif
