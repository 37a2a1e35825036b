/* runtime/cuda/cuda_record.h -- the recordings of ls_cuda_device. */
#ifndef LS_CUDA_RECORD_H
#define LS_CUDA_RECORD_H

#include "runtime/engine/device.h"

bool ls_cuda_record(LsDevice *d);
void *ls_cuda_recorded(LsDevice *d, void *beside);
bool ls_cuda_replay(LsDevice *d, void *recording);
void ls_cuda_forget(LsDevice *d, void *recording);

#endif
