/* runtime/cuda/cuda_caller.h -- arrays on the GPU and a stream that belong to the caller of a
 * library, for ls_cuda_device. */
#ifndef LS_CUDA_CALLER_H
#define LS_CUDA_CALLER_H

#include "runtime/engine/device.h"

bool ls_cuda_holds(LsDevice *d, const void *at);
bool ls_cuda_settle(LsDevice *d);
bool ls_cuda_after(LsDevice *d, void *stream, LsError *e);
bool ls_cuda_before(LsDevice *d, void *stream);
bool ls_cuda_take(LsDevice *d, const LsDeviceCopy *copy);

#endif
