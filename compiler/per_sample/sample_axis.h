/* compiler/per_sample/sample_axis.h -- whether the elements along the first axis of the inputs are
 * samples. */
#ifndef LS_COMPILER_PER_SAMPLE_SAMPLE_AXIS_H
#define LS_COMPILER_PER_SAMPLE_SAMPLE_AXIS_H

#include "compiler/ir/diag.h"
#include "compiler/ir/ir.h"

/* Why the first axis of the inputs holds no samples. */
typedef struct LsNoSamples {
    LsNodeId at;                /* none: nothing is known against samples */
    bool mixed;                 /* `at` combines the elements along that axis, and the results with
                                 * them; else it takes the axis away or elsewhere, so that the
                                 * outputs' first axis is another one */
} LsNoSamples;

/* Follows the first axis of the inputs, of length g->batch, to the n outputs y that losses read.
 * Says only what is certain: values that it cannot follow are taken as right. Statistics of a batch
 * (a batch norm's) and scores of pairs of samples (a contrastive loss's) are no mixing. */
LsNoSamples ls_find_no_samples(LsCtx *, const LsGraph *, const LsValueId y[], uint32_t n);

#endif
