/* runtime/cuda/stopwatch.h -- times work on the device, to choose among equivalent candidates. */
#ifndef LS_CUDA_STOPWATCH_H
#define LS_CUDA_STOPWATCH_H

#include <stdbool.h>

/* Runs `job` once and returns its time in ns; < 0: it failed. */
typedef struct LsStopwatch {
    double (*time)(void *self, bool (*run)(void *job), void *job);
    void *self;
} LsStopwatch;

#endif
