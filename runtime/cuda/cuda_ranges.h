/* runtime/cuda/cuda_ranges.h -- ranges of time with names, for NVIDIA's tools, where the toolkit has
 * them. */
#ifndef LS_CUDA_RANGES_H
#define LS_CUDA_RANGES_H

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
static inline void nvtxRangePushA(const char *name) { (void)name; }
static inline void nvtxRangePop(void) {}
#endif

#endif
