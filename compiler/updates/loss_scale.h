/* compiler/updates/loss_scale.h -- what ls_optimizer appends for g->scaling (ls_loss_scale:
 * passes.h). */
#ifndef LS_COMPILER_UPDATES_LOSS_SCALE_H
#define LS_COMPILER_UPDATES_LOSS_SCALE_H

#include "compiler/updates/update_options.h"

/* Appends REDUCE_FINITE or REDUCE_SUM_SQUARE of v over all its axes, to a scalar. */
LsValueId ls_all_axes(LsCtx *, LsGraph *, LsOpCode op, LsValueId v);
/* Appends 1 / scale, a scalar of the update phase. */
LsValueId ls_scaling_inverse(LsCtx *, LsGraph *);
/* Appends the machine that moves the scale at the end of a step, and replaces the updates of
 * running statistics by updates that a bad step skips. factor: a negative number if the step is
 * bad; sums: an update takes several micro-batches. */
void ls_scaling_move(LsCtx *, LsGraph *, const LsLossScale *, LsValueId factor, bool sums);

#endif
