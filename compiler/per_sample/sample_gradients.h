/* compiler/per_sample/sample_gradients.h -- what options say of gradients of single samples. */
#ifndef LS_COMPILER_PER_SAMPLE_SAMPLE_GRADIENTS_H
#define LS_COMPILER_PER_SAMPLE_SAMPLE_GRADIENTS_H

#include "compiler/ir/graph.h"

/* What --grads asks for beside the gradients of the parameters: those of every sample with their
 * norms, or the norms alone. */
typedef enum { LS_GRADS_MEAN, LS_GRADS_PER_SAMPLE, LS_GRADS_NORMS } LsGradsMode;
/* What --randomness says of random numbers in the model: refused, other ones for every sample, the
 * same for all. */
typedef enum { LS_RANDOM_ERROR, LS_RANDOM_DIFFERENT, LS_RANDOM_SAME } LsRandomness;
/* What norms of samples are made of (--sample-norms): what is cheapest for each weight; where these
 * ways are known, pairs of rows, or tiles of the gradients of samples, which are not stored; these
 * gradients themselves. */
typedef enum { LS_NORMS_CHEAPEST, LS_NORMS_PAIRS, LS_NORMS_TILES, LS_NORMS_TERMS } LsSampleNorms;
/* The predicted time of a node on a machine, ns. */
typedef struct LsNodePrice {
    double (*ns)(const void *machine, const LsGraph *, LsNodeId);
    const void *machine;
} LsNodePrice;
/* price: decides between ways before there is a plan; not used without samples. */
typedef struct LsSampleGrads {
    LsGradsMode mode;
    LsPrivacy privacy;
    LsRandomness randomness;
    LsSampleNorms norms;
    LsNodePrice price;
} LsSampleGrads;
static inline bool ls_wants_samples(const LsSampleGrads *o)
{
    return o->mode != LS_GRADS_MEAN || o->privacy.on;
}

/* Lets random numbers depend on a sample's place in the whole batch, of which the graph has one of
 * `parts` parts. */
bool ls_part_randomness(LsCtx *, LsGraph *, int64_t parts);

#endif
