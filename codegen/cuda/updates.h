/* codegen/cuda/updates.h -- the updates of small tensors, many to a kernel.
 *
 * A network has hundreds of scales, biases and running statistics. A GPU takes as long to start the
 * update of one as to carry out those of dozens. Their gradients then wait for each other, some KB
 * each. */
#ifndef LS_CODEGEN_CUDA_UPDATES_H
#define LS_CODEGEN_CUDA_UPDATES_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Joins updates that are alike, in the order of the graph; each stands where its last member stood. How
 * many were joined; 0 for other targets than CUDA. */
uint32_t ls_join_updates(LsCtx *cx, LsGraph *g, const LsTarget *t);

#endif
