/* codegen/kernels/loss_forward.h -- the value of cross-entropy and negative log-likelihood. */
#ifndef LS_CODEGEN_KERNELS_LOSS_FORWARD_H
#define LS_CODEGEN_KERNELS_LOSS_FORWARD_H

#include "codegen/kernels/loss_text.h"

/* Prints all parts and the launch. */
void ls_loss_forward(const LsLossText *l);
/* XENT_SUM and LABEL_WEIGHT: the same sums in the same order, from what is known of each
 * position. */
void ls_loss_sums(const LsLossText *l);
/* XENT_LSE; XENT_PART, whose units are those of all positions together; XENT_END. */
void ls_loss_lse(const LsLossText *l);
void ls_loss_part(const LsLossText *l);
void ls_loss_end(const LsKernelText *k);

#endif
