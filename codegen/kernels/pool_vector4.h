/* codegen/kernels/pool_vector4.h -- pooling on GPUs, four channels at a time: windows of at most
 * LS_POOL_UNROLL positions. */
#ifndef LS_CODEGEN_KERNELS_POOL_VECTOR4_H
#define LS_CODEGEN_KERNELS_POOL_VECTOR4_H

#include "codegen/kernels/pool_text.h"

void ls_pool_fours_forward(const LsPool *p);
void ls_pool_fours_gradient(const LsPool *p);

#endif
