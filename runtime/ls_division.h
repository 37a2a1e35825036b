/* runtime/ls_division.h -- how the samples of an update are divided.
 *
 * An update has batches, a batch has micro-batches, a micro-batch has samples; a step of the
 * program runs one micro-batch. Ranks each run a block of an update's micro-batches, one after the
 * other; in a pipeline they pass the stages. */
#ifndef LS_DIVISION_H
#define LS_DIVISION_H

#include <stdint.h>

typedef struct LsDivision {
    int64_t samples;            /* of a micro-batch: dim 0 of the inputs */
    int micro_batches;          /* of a batch of training; 0, 1: it is not cut */
    int batches;                /* of an update; 0, 1: one. In private training as many as needed */
} LsDivision;

/* Samples that a library takes at a time, whose updates draw theirs of all data. */
#define LS_NET_MOST ((int64_t)1 << 60)

static inline int64_t ls_micro_batches(const LsDivision *d)
{
    return d->micro_batches > 1 ? d->micro_batches : 1;
}
/* Samples of a batch of training. */
static inline int64_t ls_batch_samples(const LsDivision *d)
{
    return d->samples * ls_micro_batches(d);
}
static inline int64_t ls_update_batches(const LsDivision *d)
{
    return d->batches > 1 ? d->batches : 1;
}

#endif
