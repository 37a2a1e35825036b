/* codegen/kernels/move_axes.h -- copies of boxes between strided tensors. */
#ifndef LS_CODEGEN_KERNELS_MOVE_AXES_H
#define LS_CODEGEN_KERNELS_MOVE_AXES_H

#include "codegen/kernels/loop_nest.h"

enum { LS_COPY_TO, LS_COPY_FROM, LS_COPY_TENSORS };     /* tensors of the nest */

typedef struct LsCopy {
    LsNest *n;              /* merged */
    int operand;
    int64_t to, from;       /* index of the first element in the result, in the operand */
} LsCopy;

/* Prints the part NAME_<suffix>. */
LsGrid ls_copy_part(const LsKernelText *k, const char *suffix, const LsCopy *c);
/* Prints the part NAME_fill, which sets every element of result 0. */
LsGrid ls_fill_part(const LsKernelText *k, double value);

/* codegen/kernels/pad.c */
void ls_pad_emit(const LsKernelText *k);
void ls_pad_grad_emit(const LsKernelText *k);

#endif
