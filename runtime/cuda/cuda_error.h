/* runtime/cuda/cuda_error.h -- one sentence for a failed CUDA call. */
#ifndef LS_CUDA_ERROR_H
#define LS_CUDA_ERROR_H

#include "runtime/cuda/cuda_state.h"

/* True if err is cudaSuccess; else keeps an error that names the failed action, and returns
 * false. */
bool ls_cuda_check(LsCuda *c, cudaError_t err, const char *what);
/* The sentence for a process that finds no GPU; err: of cudaGetDeviceCount. Returns false. */
bool ls_cuda_none(cudaError_t err, LsError *e);

#endif
