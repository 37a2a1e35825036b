/* codegen/kernels/read_padded.h -- operands of a body that cover a part of its space (LsInset): a row of
 * the innermost axis finds its own by the indices of the other axes, which stay joined as if there
 * were none, so that the loops, and the bits of a sum, are those of any other body. */
#ifndef LS_CODEGEN_KERNELS_READ_PADDED_H
#define LS_CODEGEN_KERNELS_READ_PADDED_H

#include "codegen/kernels/printed_body.h"

/* Strides of operand x: the innermost axis alone moves it. */
void ls_inset_strides(const LsKernelText *k, LsNest *n, int x);

/* Pointers and places of what says whose an element is. */
void ls_inset_declare(const LsBody *b);
/* In front of the innermost loop, for operand 3: whether the row is there (o3), where (row3), and
 * which of its points this is (nth3). */
void ls_inset_rows(const LsBody *b);
/* Inside it: the operand as a3. */
void ls_inset_load(const LsBody *b, const LsInset *in);

#endif
