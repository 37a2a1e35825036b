/* codegen/kernels/regression.h -- mean squared, absolute and logistic losses and their
 * gradients. */
#ifndef LS_CODEGEN_KERNELS_REGRESSION_H
#define LS_CODEGEN_KERNELS_REGRESSION_H

#include "codegen/emit/kernel_emit.h"

/* Print all parts and the launch, of the loss and of its gradient. */
void ls_regression_emit(const LsKernelText *k);
void ls_regression_grad_emit(const LsKernelText *k);
/* Units of the loss's first part; each leaves a partial sum, a double, in the workspace. */
int64_t ls_regression_units(const LsGraph *g, LsNodeId n);

#endif
