/* runtime/cuda/cuda_follow.h -- what a recorded step waits for. */
#ifndef LS_CUDA_FOLLOW_H
#define LS_CUDA_FOLLOW_H

#include "runtime/cuda/cuda_state.h"

/* Part of ls_cuda_device. */
bool ls_cuda_follow(LsDevice *d, uint32_t k, const uint32_t *step, uint32_t n);
/* Of a recording whose steps were told what to wait for: its end waits for all. */
bool ls_cuda_join(LsCuda *c);

#endif
