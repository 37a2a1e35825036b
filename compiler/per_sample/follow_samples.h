/* compiler/per_sample/follow_samples.h -- where values have the samples of a batch. */
#ifndef LS_COMPILER_PER_SAMPLE_FOLLOW_SAMPLES_H
#define LS_COMPILER_PER_SAMPLE_FOLLOW_SAMPLES_H

#include "compiler/ir/diag.h"
#include "compiler/ir/ir.h"

enum { LS_MOST_PLACES = 2 };

/* Of a value. A *place* says where it has the samples: its element number i, row-major, belongs to
 * sample i / inner % batch. */
typedef struct LsPlaces {
    bool lost;                  /* nothing is claimed */
    bool sampled;               /* computed from samples */
    int n;                      /* places; 0 though it is sampled: a sum over samples, or another
                                 * statistic */
    int64_t inner[LS_MOST_PLACES];
    LsNodeId gone;              /* the last node that took away a place */
} LsPlaces;

typedef struct LsSamples {
    const LsGraph *g;
    int64_t length;             /* of the axis that is followed: g->batch samples */
    bool attends;               /* attention over that axis keeps its elements in place, and is no
                                 * mixing: of tokens */
    LsPlaces *of;               /* by value */
    LsNodeId mixed;             /* the first node that combines different samples; none */
} LsSamples;

/* Follows the first axis of the inputs, of length g->batch, through the nodes in `need` (NULL:
 * all). gradient_of: by value, the value whose gradient it is a part of (NULL: there are no
 * gradients). Says only what is certain. */
LsSamples ls_follow_samples(LsCtx *, const LsGraph *, const bool *need,
                            const LsValueId *gradient_of);

/* The same for the second axis of the inputs, of length `tokens`, whose elements attention may
 * combine. Inputs without it, of other shapes, are lost. */
LsSamples ls_follow_tokens(LsCtx *, const LsGraph *, const bool *need, int64_t tokens);

/* The axis of s that has such a place; -1: the samples are not within one axis. */
int ls_sample_axis(const LsShape *s, int64_t inner, int64_t batch);

#endif
