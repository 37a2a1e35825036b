/* compiler/per_sample/batch_mixing.h -- whether the samples of a batch depend on each other.
 *
 * Where they do, a batch that is cut into parts is another one, and so is a batch that copies of
 * its samples fill up. */
#ifndef LS_COMPILER_PER_SAMPLE_BATCH_MIXING_H
#define LS_COMPILER_PER_SAMPLE_BATCH_MIXING_H

#include "compiler/per_sample/follow_samples.h"

/* What a value has to do with the samples of a batch. */
typedef enum {
    LS_FREE_OF_SAMPLES,         /* nothing: of parameters and constants alone */
    LS_PLACED,                  /* each sample has elements of its own, in a place that is known */
    LS_SUMMED,                  /* it is a statistic of all samples */
    LS_NOT_FOLLOWED,            /* that is not known, or its elements belong to pairs of samples */
} LsSampleRole;
LsSampleRole ls_role_of(const LsSamples *, LsValueId);

/* By node: the loss and the running statistics are computed by it. */
bool *ls_nodes_of_loss(LsCtx *, const LsGraph *);

/* A node whose result belongs to samples, but that reads a statistic of all of them. Losses do:
 * they divide by the weights of all labels. */
bool ls_reads_statistic(const LsSamples *, LsNodeId);

typedef struct LsMixingOptions {
    int64_t parts;              /* of a batch: each would take what is mixed from its own samples.
                                 * 0, 1: it is not cut */
    int64_t accumulate;         /* likewise: batches of an update; 0, 1: one */
    bool own;                   /* --mixed-parts=own: parts may */
    bool whole_loss;            /* gradients of samples are asked for: the file's loss stays one of
                                 * all samples */
} LsMixingOptions;

/* Sets g->mixing. Batch norms, and a file's loss that is a plain mean, become such of the samples
 * that count (LsCounted). requires the forward part and its loss. Warns of what parts and
 * accumulation change; false after the refusal of parts. */
bool ls_batch_mixing(LsCtx *, LsGraph *, const LsMixingOptions *);

#endif
