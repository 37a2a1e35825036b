/* codegen/cuda/moments.h -- the mean and the variance of a batch in one pass over it.
 *
 * A second pass costs a GPU as much as the first: both are bound by memory. The sums are of the
 * differences d from the channel's first element, which is about as far from the others as they are
 * from their mean: mean = first + sum d / n, variance = (sum d^2 - (sum d)^2 / n) / n. Runs of 16
 * d^2 are added in float, all else in double. The variance is then as exact as by two passes,
 * unless the first element is some hundred standard deviations from the mean. */
#ifndef LS_CODEGEN_CUDA_MOMENTS_H
#define LS_CODEGEN_CUDA_MOMENTS_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Joins each mean over channels-last images with the variance about it; returns the pairs
 * joined. */
uint32_t ls_join_moments(LsCtx *cx, LsGraph *g, const LsTarget *t);

#endif
