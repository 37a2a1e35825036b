/* runtime/cuda/cuda_stopwatch.h -- times candidates on the device. */
#ifndef LS_RUNTIME_CUDA_CUDA_STOPWATCH_H
#define LS_RUNTIME_CUDA_CUDA_STOPWATCH_H

#include "runtime/cuda/cuda_state.h"

/* LsStopwatch.time for an LsCuda. It waits, so it must not be called during a recording. */
double ls_cuda_time(void *self, bool (*run)(void *job), void *job);

#endif
