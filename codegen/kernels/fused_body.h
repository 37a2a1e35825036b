/* codegen/kernels/fused_body.h -- the statements of a FUSED node as text, for the loops of pointwise.c and
 * reduce_unit.c.
 *
 * Operand k is the pointer xk, loaded as ak; statement s gives vs; result k is the pointer yk. */
#ifndef LS_CODEGEN_KERNELS_FUSED_BODY_H
#define LS_CODEGEN_KERNELS_FUSED_BODY_H

#include "codegen/kernels/printed_body.h"

LsBody ls_body_new(const LsKernelText *k);
/* The same over loops of the caller's: strides of the operands, then of the walk index. */
LsBody ls_body_over(const LsKernelText *k, LsNest *nest);
/* Loads of the operands that change there. */
void ls_body_load(const LsBody *b, LsLoadAt at);
/* Operands of which each step along this axis reads others, four at a time. */
int ls_body_streams(const LsBody *b, int axis);
/* Inside LS_ONCE4 in LS_AHEAD: fetches them for the steps of the group at g along this axis. */
void ls_body_fetch(const LsBody *b, int axis, const char *g);
/* Inside the innermost loop, without stores. */
void ls_body_statements(const LsBody *b);
/* Pointers, and the operands that are one element for the whole node. */
void ls_body_declare(const LsBody *b);
/* The operands that stay the same along the innermost axis. */
void ls_body_rows(const LsBody *b);
/* Inside the innermost loop: loads, statements, stores. */
void ls_body_point(const LsBody *b);
/* Two FUSED nodes walk their points in the same order, so reductions add alike. */
bool ls_body_same_loops(const LsKernelText *a, const LsKernelText *b);

#endif
