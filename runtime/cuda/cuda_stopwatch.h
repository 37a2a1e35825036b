/* runtime/cuda/cuda_stopwatch.h -- the clock that libraries choose by. */
#ifndef LS_RUNTIME_CUDA_CUDA_STOPWATCH_H
#define LS_RUNTIME_CUDA_CUDA_STOPWATCH_H

#include "runtime/cuda/cuda_state.h"

/* LsStopwatch.time, of an LsCuda. Waits: not while work is recorded. */
double ls_cuda_time(void *self, bool (*run)(void *job), void *job);

#endif
