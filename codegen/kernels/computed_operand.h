/* codegen/kernels/computed_operand.h -- operands that a convolution or a product computes as it
 * packs them (LsComputed of compiler/passes/fuse.h). */
#ifndef LS_CODEGEN_KERNELS_COMPUTED_OPERAND_H
#define LS_CODEGEN_KERNELS_COMPUTED_OPERAND_H

#include "codegen/kernels/loop_nest.h"
#include "compiler/passes/fuse.h"

/* Sets stride[] to an operand's strides (by place, by channel), in elements. The computed value is
 * rows of channels, one per place: its elements lie at place * channels + channel, with channels
 * along its axis `axis`. False: the operand is no such tensor, nor one value per place, per
 * channel, or for all. */
bool ls_computed_strides(const LsGraph *g, LsValueId operand, const LsShape *value, LsLayout layout,
                         int axis, int64_t stride[2]);

/* Prints NAME_compute, an LsCompute of runtime/kernels/ls_gemm.h, if the node has a computed
 * operand. */
void ls_computed_emit(const LsKernelText *k);
/* LsStored of an element type: "LS_STORED_BF16". */
const char *ls_stored_word(LsType t);
/* The type of 16 bits to which the kernel rounds the operand; LS_REAL: to none, or the operand is
 * stored so. */
LsType ls_rounds_operand(const LsGraph *g, LsNodeId n, int operand);
/* An LsSource's fields for an operand that is read, whose address is the text `at`. */
const char *ls_stored_source(const LsKernelText *k, const char *at, int operand);
/* Prints "const LsSource VAR = …;" for an operand, computed or read. */
void ls_computed_source(const LsKernelText *k, const char *var, int operand);

#endif
