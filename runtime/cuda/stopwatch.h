/* runtime/cuda/stopwatch.h -- how long a piece of work takes on the device, for choosing among
 * several that give the same. */
#ifndef LS_CUDA_STOPWATCH_H
#define LS_CUDA_STOPWATCH_H

#include <stdbool.h>

/* One run of `job`, and how long it took, ns; < 0: it failed. */
typedef struct LsStopwatch {
    double (*time)(void *self, bool (*run)(void *job), void *job);
    void *self;
} LsStopwatch;

#endif
