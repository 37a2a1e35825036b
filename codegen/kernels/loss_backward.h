/* codegen/kernels/loss_backward.h -- the gradients of cross-entropy and negative log-likelihood. */
#ifndef LS_CODEGEN_KERNELS_LOSS_BACKWARD_H
#define LS_CODEGEN_KERNELS_LOSS_BACKWARD_H

#include "codegen/kernels/loss_text.h"

/* Prints all parts and the launch. */
void ls_loss_backward(const LsLossText *l);

#endif
