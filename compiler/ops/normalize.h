/* compiler/ops/normalize.h -- builds normalisations from the rows of norm.def. */
#ifndef LS_COMPILER_OPS_NORMALIZE_H
#define LS_COMPILER_OPS_NORMALIZE_H

#include "compiler/ops/row.h"

typedef struct LsStats { LsValueId mean, var, invstd; } LsStats;

/* Statistics of x over the axes, which are kept as 1. */
LsStats ls_stats(LsCtx *cx, LsGraph *g, LsValueId x, uint32_t axes, double eps);
/* Statistics of each sample over the groups of its channels and all places; each channel has those
 * of its group: N,C,1.. */
LsStats ls_group_stats(LsCtx *cx, LsGraph *g, LsValueId x, int64_t groups, double eps);
/* (x - mean) * invstd * scale + bias with the statistics of x. scale and bias broadcast to the
 * statistics. */
LsValueId ls_normalized(LsCtx *cx, LsGraph *g, LsValueId x, const LsStats *s, LsValueId scale,
                        LsValueId bias);
/* A vector v of channels as 1,C,1..: the shape that broadcasts against an image of this rank. */
LsValueId ls_per_channel(LsCtx *cx, LsGraph *g, LsValueId v, int rank);
/* Operand k holds one number per channel; reports otherwise. */
bool ls_onnx_per_channel(const LsOnnxNode *n, int k, int64_t channels);

#endif
