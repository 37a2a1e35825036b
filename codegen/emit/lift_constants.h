/* codegen/emit/lift_constants.h -- numbers in the text of a GPU's kernel that may as well be its arguments.
 *
 * Shapes, strides and sizes are printed as constants. Kernels whose texts differ in some of them
 * alone can be one kernel to which these are given when it is launched, behind its other arguments:
 * one text to read, and to compile, where there were many. That costs no speed where a number is
 * computed with once per unit or row: factors, summands and divisors of indices, bounds of
 * ls_least, LS_ROWS and LS_COPY. Emitters mark these as they print them (text_emit.h: LS_N). Bounds of
 * LS_LANES (LS_BOUND) stay constants, as unrolled loops need them, but where a thread has one step at
 * most, and in kernels of one block. Numbers without a mark are constants: sizes of arrays and of rows
 * of threads, what functions of a part are given. Kernels may also have other numbers of operands: which
 * argument is which is a number, too, and the text takes as many as the most of them have. */
#ifndef LS_CODEGEN_EMIT_LIFT_CONSTANTS_H
#define LS_CODEGEN_EMIT_LIFT_CONSTANTS_H

#include "base/arena.h"
#include "codegen/emit/text_emit.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { LS_NUMBERS_MOST = 64 };          /* that one kernel has as arguments */

typedef struct LsNumber {
    size_t at, length;
    int64_t value;
    bool head;                          /* how many arguments a part has */
} LsNumber;

typedef struct LsNumbers {              /* of one kernel */
    const char *text, *host;            /* the parts; the function that launches them */
    const char *behind;                 /* in host, behind that function */
    int narg;                           /* arguments of the parts; all have the same */
    LsNumber *number; uint32_t n;       /* in the order of the text */
    const char *rest;                   /* the text without them */
    uint64_t hash;                      /* of rest */
} LsNumbers;

/* text, host: as an emitter prints them (LsKernelText); marks: of text; host begins with the function that launches
 * the parts. NULL: that does more, and the kernel shares no text. */
LsNumbers *ls_numbers_find(LsArena *a, const char *text, const LsMarks *marks, const char *host);
/* Whether the two may share a kernel. */
bool ls_numbers_alike(const LsNumbers *a, const LsNumbers *b);

typedef struct LsShared {               /* what kernels that are alike have together */
    const LsNumbers *const *of; uint32_t nof;
    int *argument;                      /* by number of a text: which argument it is; -1: constant */
    int narg;                           /* of the text, before the numbers */
    int n;                              /* numbers that are arguments */
    bool fours[LS_NUMBERS_MOST];        /* all values of an argument are multiples of four */
} LsShared;

/* The numbers that are not the same in all texts become arguments; all: every number does. There may
 * be none, when only the numbers of units differ. NULL: they would be too many. */
LsShared *ls_numbers_share(LsArena *a, const LsNumbers *const of[], uint32_t nof, bool all);
/* Argument k of kernel i among them. */
int64_t ls_numbers_value(const LsShared *s, uint32_t i, int k);

/* The kernels' one text: the parts take the arguments n0, n1, ... */
const char *ls_numbers_text(LsArena *a, const LsShared *s);
/* The host text of kernel i; `own` in it is the name of the kernel, its parts are those of `parts`.
 */
const char *ls_numbers_host(LsArena *a, const LsShared *s, uint32_t i, const char *own,
                            const char *parts);
/* A table of parts (LsKernelText) with the arguments counted. */
const char *ls_numbers_table(LsArena *a, const LsShared *s, const char *table);

#endif
