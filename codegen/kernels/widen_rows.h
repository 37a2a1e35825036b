/* codegen/kernels/widen_rows.h -- rows of reals for kernels that pass over a row several times.
 *
 * On a CPU elements stored in 16 bits are widened into an array of reals before the first pass, and
 * rounded out of one behind the last; rows of reals are read and written in place. A GPU's
 * functions of rows read elements of either width, so all rows stay in place there; loops over
 * their elements read and write them by ls_row_get and ls_row_put. */
#ifndef LS_CODEGEN_KERNELS_WIDEN_ROWS_H
#define LS_CODEGEN_KERNELS_WIDEN_ROWS_H

#include "codegen/kernels/loop_nest.h"

/* A row of n elements of the array `all`, which lies at the text `at`, by y rows of threads at
 * once. */
typedef struct LsRowStage { const char *all, *at; int64_t n; int y; } LsRowStage;

/* Declares `var`, a pointer to the operand's row. */
void ls_row_stage_in(const LsKernelText *k, const char *var, int operand, const LsRowStage *s);
/* Declares `var`, a pointer to the row to fill; ls_row_stage_end prints what stores it, if that is
 * not its place. */
void ls_row_stage_out(const LsKernelText *k, const char *var, int result, const LsRowStage *s);
void ls_row_stage_end(const LsKernelText *k, const char *var, int result, const LsRowStage *s);

/* ---- rows in place on a GPU ---- */
/* The kernel is such: one of a GPU whose result 0 is stored in 16 bits. */
bool ls_rows_in_place(const LsKernelText *k);
/* Element i of the array x of this type, as a value; of several neighbours (wide: 4, 8), LS_FOUR(x)
 * or the like has to precede. */
const char *ls_row_get(const LsKernelText *k, LsType type, int wide, const char *x);
/* Prints y[i] = v, rounded to the type of y's elements. */
void ls_row_put(const LsKernelText *k, LsType type, int wide, const char *y, const char *v);

#endif
