/* runtime/cuda/cuda_order.h -- batches, steps and losses of ls_cuda_device, in stream order; its
 * event clock. */
#ifndef LS_CUDA_ORDER_H
#define LS_CUDA_ORDER_H

#include "runtime/engine/device.h"

bool ls_cuda_feed(LsDevice *d, int slot, int64_t at, const void *here, int64_t bytes);
bool ls_cuda_fed(LsDevice *d, int slot);
bool ls_cuda_begin(LsDevice *d, int slot, const LsRun *run);
bool ls_cuda_end(LsDevice *d, int slot, const void *loss, const void *weight);
bool ls_cuda_loss(LsDevice *d, int slot, double *loss, double *weight);
void ls_cuda_enter(LsDevice *d, const char *name);
void ls_cuda_leave(LsDevice *d);
bool ls_cuda_marks(LsDevice *d, uint32_t n);
void ls_cuda_mark(LsDevice *d, uint32_t k);
int64_t ls_cuda_took(LsDevice *d, uint32_t a, uint32_t b);

#endif
