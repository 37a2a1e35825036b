/* codegen/kernels/head_gradient.h -- updates that compute the gradient of a vocabulary head's
 * weight, in parts of the classes.
 *
 * The gradient has an element for every element of the weight, [classes, columns], and that of a
 * table which shares the weight is added to it. For some classes at a time the kernel computes
 *
 *     scores = x weight' (+ bias)             [positions, classes of the part]
 *     slope  = the gradient of cross-entropy of these scores
 *     sum    = slope' x                       [classes of the part, columns], as reals
 *     sum   += the rows of dy whose index is one of these classes
 *
 * and updates these rows of the weight. It prints the kernels of these steps as their own
 * emitters do, so that their bits are those of the nodes that a step would have otherwise. */
#ifndef LS_CODEGEN_KERNELS_HEAD_GRADIENT_H
#define LS_CODEGEN_KERNELS_HEAD_GRADIENT_H

#include "codegen/emit/kernel_emit.h"
#include "compiler/passes/fuse.h"

void ls_head_gradient_emit(const LsKernelText *k);
int64_t ls_head_gradient_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t);

#endif
