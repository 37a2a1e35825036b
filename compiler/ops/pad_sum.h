/* compiler/ops/pad_sum.h -- sums the gradients of one tensor's parts. */
#ifndef LS_COMPILER_OPS_PAD_SUM_H
#define LS_COMPILER_OPS_PAD_SUM_H

#include "compiler/ir/diag.h"

/* a + b, two gradients of one value. Gradients of neighbouring slices are joined (pad_sum.c). */
LsValueId ls_sum_grads(LsCtx *cx, LsGraph *g, LsValueId a, LsValueId b);

#endif
