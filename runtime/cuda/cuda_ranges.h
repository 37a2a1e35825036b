/* runtime/cuda/cuda_ranges.h -- named NVTX ranges for NVIDIA's tools, where the toolkit has the
 * header. */
#ifndef LS_CUDA_RANGES_H
#define LS_CUDA_RANGES_H

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
static inline void nvtxRangePushA(const char *name) { (void)name; }
static inline void nvtxRangePop(void) {}
#endif

#endif
