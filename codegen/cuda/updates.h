/* codegen/cuda/updates.h -- the updates of small tensors, many to a kernel.
 *
 * A network has hundreds of scales, biases and running statistics. On a GPU one launch takes as
 * long as dozens of their updates. The price: the gradients, some KB each, live until the joint
 * update. */
#ifndef LS_CODEGEN_CUDA_UPDATES_H
#define LS_CODEGEN_CUDA_UPDATES_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Joins updates that are alike, in the order of the graph; a joint update stands where its last
 * member stood. Returns the updates joined; 0 for other targets than CUDA. */
uint32_t ls_join_updates(LsCtx *cx, LsGraph *g, const LsTarget *t);

#endif
