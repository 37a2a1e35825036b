/* runtime/ls_run.h -- what kernels may ask while they run: plain numbers, laid out alike for the
 * host and for a GPU, whose compiler may have no header to bring the integer types. */
#ifndef LS_RUN_H
#define LS_RUN_H

#ifndef __CUDACC_RTC__
#include <stdbool.h>
#include <stdint.h>
#endif

/* The caller sets it before each step. On a device lies a copy. */
typedef struct LsRun {
    struct LsPool *pool;
    struct LsDevice *device;    /* NULL: this machine */
    uint64_t seed;              /* of the run */
    int64_t step;               /* micro-steps done before this one: keys random numbers */
    int64_t valid;              /* samples of the batch that count; less
                                 * than batch in the last one */
    double lr;                  /* learning rate of this update */
    int64_t update;             /* updates done, this one included: t of Adam, from 1 */
    bool first, apply;          /* of an accumulation: first micro-step; the one that updates */
    double share;               /* this micro-step's samples over the mean of those of its update's
                                 * micro-steps; 1 where all have as many */
} LsRun;

#endif
