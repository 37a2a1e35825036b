/* runtime/cuda/cuda_error.h -- what is wrong with a call of CUDA, in one sentence. */
#ifndef LS_CUDA_ERROR_H
#define LS_CUDA_ERROR_H

#include "runtime/cuda/cuda_state.h"

/* err is cudaSuccess; else keeps a failure that says what could not be done, and returns false. */
bool ls_cuda_check(LsCuda *c, cudaError_t err, const char *what);

#endif
