/* codegen/emit/text_emit.h -- text output: one line at a time, indented by the braces so far.
 *
 * Numbers of a GPU's kernel that may as well be its arguments (lift_constants.h) are printed by the
 * conversions LS_N and LS_N64 instead of %d and %PRId64. They begin with a mark, a byte that
 * ls_emit_line takes out of the line; it notes the place instead. So strings that become part of a
 * line may have marks, too. */
#ifndef LS_CODEGEN_EMIT_TEXT_EMIT_H
#define LS_CODEGEN_EMIT_TEXT_EMIT_H

#include "base/arena.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

/* A factor, summand or divisor of an index, a bound of LS_ROWS, LS_COPY, ls_least and the like: anything
 * that a thread computes with once per unit or row. */
#define LS_N "\001%d"
#define LS_N64 "\001%" PRId64
/* A bound of LS_LANES or LS_ONCE, or of the same in fours, if LS_FOURS begins the loop's word. */
#define LS_BOUND "\002%d"
#define LS_BOUND64 "\002%" PRId64
#define LS_FOURS "\003"
/* A part of such a bound. */
#define LS_INNER64 "\004%" PRId64
/* Of LS_PART: its arguments, and threads of a row. */
#define LS_HEAD "\005%d"
#define LS_WIDTH "\006%d"

typedef enum {
    LS_MARK_NONE, LS_MARK_N, LS_MARK_BOUND, LS_MARK_FOURS, LS_MARK_INNER, LS_MARK_HEAD, LS_MARK_WIDTH,
    LS_NMARKS
} LsMarkKind;

typedef struct LsMark {
    size_t at;                  /* in the text without marks */
    LsMarkKind kind;
    bool fours;                 /* BOUND: of a loop in fours */
} LsMark;

typedef struct LsMarks { LsArena *arena; LsMark *mark; uint32_t n, cap; } LsMarks;

/* Headers of runtime/kernels/ that a kernel's text for processors includes beside ls_kernel.h. */
enum { LS_NEEDS_CONV = 1, LS_NEEDS_MATMUL = 2, LS_NEEDS_ATTENTION = 4 };

typedef struct LsEmit {
    FILE *to;
    int depth;
    LsMarks *marks;             /* of the text that ls_emit_line has printed; NULL:
    they are not wanted */
    size_t length;              /* of that text */
    unsigned needs;             /* LS_NEEDS_ bits, which emitters set */
} LsEmit;

/* A line that starts with '}' is indented one less, one that ends with '{'
 * one more for what follows. */
__attribute__((format(printf, 2, 3)))
void ls_emit_line(LsEmit *e, const char *fmt, ...);

/* The text with its marks taken out: for where numbers must be constants. */
const char *ls_unmarked(LsArena *a, const char *text);

/* s as a literal of C, quotes included; NULL is empty. */
void ls_emit_string(FILE *to, const char *s);

#endif
