/* codegen/cuda/generated_conv.h -- convolutions that cuDNN has no engine for, as generated
 * kernels. */
#ifndef LS_CODEGEN_CONV_OWN_H
#define LS_CODEGEN_CONV_OWN_H

#include "codegen/emit/kernel_emit.h"

/* Prints the part of CONV, CONV_DX or CONV_DW: one thread per element of the result, sums in a
 * fixed order. The kernel is right for every window, but not tuned. */
LsGrid ls_conv_own_part(const LsKernelText *k);

#endif
