/* runtime/cuda_kernels/ls_cuda_add.h -- the kernel that adds what two ranks sent
 * (runtime/cuda_ranks/cuda_ranks.c). */
#ifndef LS_RUNTIME_CUDA_KERNELS_LS_CUDA_ADD_H
#define LS_RUNTIME_CUDA_KERNELS_LS_CUDA_ADD_H

#include "runtime/cuda_kernels/ls_cuda.h"

/* to = a + b for n reals, a unit for LS_ADD_UNIT of them. `to` may be a or b. */
LS_PART(rank_add, 4, 256, 1)
{
    enum { LS_ADD_UNIT = 4096 };
    LS_UNITS;
    real *const to = (real *)ls_at[0];
    const real *const a = (const real *)ls_at[1], *const b = (const real *)ls_at[2];
    LS_NUMBER(n, 3);
    const int64_t end = ls_least(hi * LS_ADD_UNIT, n);
    LS_LANES(i, lo * LS_ADD_UNIT, end) { to[i] = a[i] + b[i]; }
}

#endif
