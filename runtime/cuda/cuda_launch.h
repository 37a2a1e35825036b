/* runtime/cuda/cuda_launch.h -- the program's own kernels. */
#ifndef LS_CUDA_LAUNCH_H
#define LS_CUDA_LAUNCH_H

#include "runtime/cuda/cuda_state.h"

/* Loads the program's device code and finds its parts. */
bool ls_cuda_load(LsCuda *c, LsError *e);

#endif
