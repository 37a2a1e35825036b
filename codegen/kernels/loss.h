/* codegen/kernels/loss.h -- what the two files of LS_K_LOSS share. */
#ifndef LS_CODEGEN_LOSS_H
#define LS_CODEGEN_LOSS_H

#include "codegen/kernels/nest.h"

/* codegen/kernels/regression.c */
void ls_regression_emit(const LsKernelText *k);
void ls_regression_grad_emit(const LsKernelText *k);
int64_t ls_regression_units(const LsGraph *g, LsNodeId n);

#endif
