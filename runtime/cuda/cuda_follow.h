/* runtime/cuda/cuda_follow.h -- dependencies between recorded steps. */
#ifndef LS_CUDA_FOLLOW_H
#define LS_CUDA_FOLLOW_H

#include "runtime/cuda/cuda_state.h"

/* Implements LsDeviceKind.follow. */
bool ls_cuda_follow(LsDevice *d, uint32_t k, const uint32_t *step, uint32_t n);
/* Ends a recording whose steps have explicit dependencies: the end waits for all steps. */
bool ls_cuda_join(LsCuda *c);

#endif
