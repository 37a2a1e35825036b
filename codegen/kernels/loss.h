/* codegen/kernels/loss.h -- what the two files of LS_K_LOSS share. */
#ifndef LS_CODEGEN_LOSS_H
#define LS_CODEGEN_LOSS_H

#include "codegen/kernels/nest.h"

/* codegen/kernels/regression.c */
void ls_regression_emit(const LsKernelText *k);
void ls_regression_grad_emit(const LsKernelText *k);
int64_t ls_regression_units(const LsGraph *g, LsNodeId n);

/* codegen/kernels/loss.c: total0 .. are the sums over units u of part[n * u + 0], ..., in a part of
 * one unit and LS_TOTAL_LANES threads, for its LS_ONE. */
enum { LS_TOTAL_LANES = 256 };
void ls_emit_totals(const LsKernelText *k, int n, int64_t units);

#endif
