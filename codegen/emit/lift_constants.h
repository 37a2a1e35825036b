/* codegen/emit/lift_constants.h -- constants in a GPU kernel's text that become its arguments.
 *
 * Shapes, strides and sizes are printed as constants. Kernels whose texts differ only in such
 * numbers can share one text that takes the numbers as arguments at launch, after its other
 * arguments: one text to read and to compile instead of many. A lifted number costs no speed if it
 * is used once per unit or row: factors, summands and divisors of indices, bounds of ls_least,
 * LS_ROWS and LS_COPY. Emitters mark these numbers as they print them (text_emit.h: LS_N). Bounds
 * of LS_LANES (LS_BOUND) stay constants, as unrolled loops need them, except where a thread has one
 * step at most, and in kernels of one block. Numbers without a mark stay constants: sizes of arrays
 * and of rows of threads, arguments of a part's functions. Kernels may also differ in their number
 * of operands: the index of an argument is a number, too, and the text takes as many arguments as
 * the longest list has. */
#ifndef LS_CODEGEN_EMIT_LIFT_CONSTANTS_H
#define LS_CODEGEN_EMIT_LIFT_CONSTANTS_H

#include "base/arena.h"
#include "codegen/emit/text_emit.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { LS_NUMBERS_MOST = 64 };          /* most numbers that one kernel has as arguments */

typedef struct LsNumber {
    size_t at, length;
    int64_t value;
    bool head;                          /* it is the number of a part's arguments */
} LsNumber;

typedef struct LsNumbers {              /* of one kernel */
    const char *text, *host;            /* the parts; the function that launches them */
    const char *behind;                 /* the text in host after that function */
    int narg;                           /* arguments of the parts; all have the same */
    LsNumber *number; uint32_t n;       /* in the order of the text */
    const char *rest;                   /* the text without the numbers */
    uint64_t hash;                      /* of rest */
} LsNumbers;

/* text, host: as an emitter prints them (LsKernelText); marks: of text. host begins with the
 * function that launches the parts. NULL: that function does more than launch, so the kernel shares
 * no text. */
LsNumbers *ls_numbers_find(LsArena *a, const char *text, const LsMarks *marks, const char *host);
/* Whether the two may share one text. */
bool ls_numbers_alike(const LsNumbers *a, const LsNumbers *b);

typedef struct LsShared {               /* the shared text of kernels that are alike */
    const LsNumbers *const *of; uint32_t nof;
    int *argument;                      /* by number of a text: the argument it becomes; -1:
                                         * constant */
    int narg;                           /* arguments of the text before the numbers */
    int n;                              /* numbers that are arguments */
    int multiple[LS_NUMBERS_MOST];      /* all values of an argument are multiples of this: 8, 4 or
                                         * 1 */
} LsShared;

/* Makes arguments of the numbers that differ between the texts; all: of every number. There may be
 * none, if the kernels differ only in their units. NULL: there would be too many. */
LsShared *ls_numbers_share(LsArena *a, const LsNumbers *const of[], uint32_t nof, bool all);
/* The value of lifted number k in kernel i. */
int64_t ls_numbers_value(const LsShared *s, uint32_t i, int k);

/* The shared text, whose parts take the arguments n0, n1, ... */
const char *ls_numbers_text(LsArena *a, const LsShared *s);
/* The host text of kernel i, with `own` as the kernel's name; it launches the parts named
 * `parts`. */
const char *ls_numbers_host(LsArena *a, const LsShared *s, uint32_t i, const char *own,
                            const char *parts);
/* A table of parts (LsKernelText) with the lifted numbers added to the arguments' count. */
const char *ls_numbers_table(LsArena *a, const LsShared *s, const char *table);

#endif
