/* codegen/cuda/moments.h -- the mean and the variance of a batch in one pass over it.
 *
 * A second pass costs a GPU as much as the first: both wait for memory. The sums are of the
 * differences d from the channel's first element, which is about as far from the others as they are
 * from their mean: mean = first + sum d / n, variance = (sum d^2 - (sum d)^2 / n) / n. Runs of 16 d^2
 * are added in float, all else in double, so that a variance is as exact as by two passes unless
 * that one element is some hundred standard deviations off. */
#ifndef LS_CODEGEN_CUDA_MOMENTS_H
#define LS_CODEGEN_CUDA_MOMENTS_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Joins each mean over channels-last images with the variance about it: how many. */
uint32_t ls_join_moments(LsCtx *cx, LsGraph *g, const LsTarget *t);

#endif
