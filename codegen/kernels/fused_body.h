/* codegen/kernels/fused_body.h -- the statements of a FUSED node as text, for the loops of
 * pointwise.c and reduce_unit.c.
 *
 * In the text, operand k is the pointer xk, loaded as ak; statement s gives vs; result k is the
 * pointer yk. */
#ifndef LS_CODEGEN_KERNELS_FUSED_BODY_H
#define LS_CODEGEN_KERNELS_FUSED_BODY_H

#include "codegen/kernels/printed_body.h"

LsBody ls_body_new(const LsKernelText *k);
/* The same over the caller's loops, which give the strides of the operands, then of the walk
 * index. */
LsBody ls_body_over(const LsKernelText *k, LsNest *nest);
/* Prints the loads of the operands that change at that loop. */
void ls_body_load(const LsBody *b, LsLoadAt at);
/* The number of operands of which each step along this axis reads new elements, four at a time. */
int ls_body_streams(const LsBody *b, int axis);
/* Inside LS_ONCE4 in LS_AHEAD: fetches these operands for the steps of the group at g along this
 * axis. */
void ls_body_fetch(const LsBody *b, int axis, const char *g);
/* Prints loads and statements of the innermost loop, without stores. */
void ls_body_statements(const LsBody *b);
/* Elements of each sample in a statistic of those that count, which statement s makes
 * (LsCounted.each); 0: of all. */
int64_t ls_body_counted(const LsBody *b, int s);
/* What holds for the points of the samples that count, if all results are statistics of these and
 * it does not change along the innermost axis; else NULL. */
const char *ls_body_rows_that_count(const LsBody *b);
/* Prints "valid", the samples that count, if a statement's value depends on them. */
void ls_body_count(const LsBody *b);
/* Prints the pointers, and loads the operands that are one element for the whole node. */
void ls_body_declare(const LsBody *b);
/* Loads the operands that stay the same along the innermost axis. */
void ls_body_rows(const LsBody *b);
/* Prints loads, statements and stores of the innermost loop. */
void ls_body_point(const LsBody *b);
/* Whether two FUSED nodes walk their points in the same order, so that reductions add alike. */
bool ls_body_same_loops(const LsKernelText *a, const LsKernelText *b);

#endif
