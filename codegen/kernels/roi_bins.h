/* codegen/kernels/roi_bins.h -- ROI_MEAN and its gradient, of LS_K_SAMPLE. */
#ifndef LS_CODEGEN_KERNELS_ROI_BINS_H
#define LS_CODEGEN_KERNELS_ROI_BINS_H

#include "codegen/emit/kernel_emit.h"

void ls_roi_emit(const LsKernelText *k);

#endif
