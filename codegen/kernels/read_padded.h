/* codegen/kernels/read_padded.h -- reading operands that cover a part of their body's space
 * (LsInset).
 *
 * A row of the innermost axis finds its source row by the indices of the other axes. These stay
 * joined as without such operands, so the loops, and the bits of a sum, are those of any other
 * body. */
#ifndef LS_CODEGEN_KERNELS_READ_PADDED_H
#define LS_CODEGEN_KERNELS_READ_PADDED_H

#include "codegen/kernels/printed_body.h"

/* Sets the strides of operand x: the innermost axis alone moves it. */
void ls_inset_strides(const LsKernelText *k, LsNest *n, int x);

/* Declares the pointers to the elements' positions in windows, and buffers of four. */
void ls_inset_declare(const LsBody *b);
/* Before the innermost loop, for operand 3: declares whether the row exists (o3), where it lies
 * (row3), and which of its points this is (nth3). */
void ls_inset_rows(const LsBody *b);
/* In the innermost loop: loads the operand as a3. */
void ls_inset_load(const LsBody *b, const LsInset *in);

#endif
