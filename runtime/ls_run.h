/* runtime/ls_run.h -- the numbers that kernels may read while they run. The layout is the same on
 * the host and on a GPU, whose compiler may have no header that defines the integer types. */
#ifndef LS_RUN_H
#define LS_RUN_H

#ifndef __CUDACC_RTC__
#include <stdbool.h>
#include <stdint.h>
#endif

/* The caller sets it before each step. A device has a copy. */
typedef struct LsRun {
    struct LsPool *pool;
    struct LsDevice *device;    /* NULL: the host */
    uint64_t seed;              /* of the run */
    int64_t step;               /* micro-batches done before this one: part of the key of random
                                 * numbers */
    int64_t valid;              /* samples of the batch that count; fewer in the last batch */
    uint32_t noise[8];          /* key of the noise of private training (ls_chacha.h): neither
                                 * logged nor saved */
    int64_t only;               /* 0, or 1 + the one sample of the batch whose clipped gradient
                                 * counts: to look at its norm */
    double lr;                  /* learning rate of this update */
    int64_t update;             /* number of this update, from 1: t of Adam */
    bool first, apply;          /* this is the first micro-batch of its update; this one updates */
    bool alone;                 /* it is the only one of its update, and nothing reads the sum of
                                 * its update's gradients */
    int64_t part;               /* number of the micro-batch in its update, from 0: its place in the
                                 * tree of gradients; over ranks: in the rank's block */
    int64_t slice;              /* number of the part in its batch, from 0, if batches are cut into
                                 * parts */
    int64_t block, parts;       /* training over ranks: the first part of this rank's block; the
                                 * parts of the update */
    int64_t apart;              /* likewise: elements from a level of partial sums to the next */
    int64_t count;              /* elements of the slice that an update node is for */
    double share;               /* this micro-batch's samples over the mean number of samples of its
                                 * update's micro-batches; 1 where all are equal */
} LsRun;

#endif
