/* codegen/emit/text_emit.h -- text output: one line at a time, indented by the braces so far.
 *
 * Emitters print a number that may become a kernel's argument (lift_constants.h) by LS_N or LS_N64
 * instead of %d or %PRId64. These conversions begin with a mark: a byte that ls_emit_line takes out
 * of the line, noting its place. So strings that become part of a line may contain marks, too. */
#ifndef LS_CODEGEN_EMIT_TEXT_EMIT_H
#define LS_CODEGEN_EMIT_TEXT_EMIT_H

#include "base/arena.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

/* A number that a thread uses once per unit or row: a factor, summand or divisor of an index, a
 * bound of LS_ROWS, LS_COPY, ls_least and the like. */
#define LS_N "\001%d"
#define LS_N64 "\001%" PRId64
/* A bound of LS_LANES or LS_ONCE, or of their forms in fours if LS_FOURS begins the loop's word. */
#define LS_BOUND "\002%d"
#define LS_BOUND64 "\002%" PRId64
#define LS_FOURS "\003"
/* A part of such a bound. */
#define LS_INNER64 "\004%" PRId64
/* The arguments of LS_PART: the number of arguments, and the threads of a row. */
#define LS_HEAD "\005%d"
#define LS_WIDTH "\006%d"

typedef enum {
    LS_MARK_NONE,
    LS_MARK_N,
    LS_MARK_BOUND,
    LS_MARK_FOURS,
    LS_MARK_INNER,
    LS_MARK_HEAD,
    LS_MARK_WIDTH,
    LS_NMARKS
} LsMarkKind;

typedef struct LsMark {
    size_t at;                  /* in the text without marks */
    LsMarkKind kind;
    bool fours;                 /* BOUND: of a loop in fours */
} LsMark;

typedef struct LsMarks { LsArena *arena; LsMark *mark; uint32_t n, cap; } LsMarks;

/* Headers of runtime/kernels/ that a kernel's text for the CPU includes besides ls_kernel.h;
 * LS_NEEDS_DOT16, LS_NEEDS_UNPACK: and before them, LS_DEFINES_. */
enum { LS_NEEDS_CONV = 1, LS_NEEDS_MATMUL = 2, LS_NEEDS_ATTENTION = 4, LS_NEEDS_DOT16 = 8,
       LS_NEEDS_CODES = 16, LS_NEEDS_UNPACK = 32, LS_NEEDS_ATTENTION16 = 64 };
#define LS_DEFINES_DOT16 "#define LS_DOT16 2\n"
#define LS_DEFINES_UNPACK "#define LS_UNPACKS\n"

typedef struct LsEmit {
    FILE *to;
    int depth;
    LsMarks *marks;             /* of the text that ls_emit_line has printed; NULL: not wanted */
    size_t length;              /* of that text, in bytes */
    unsigned needs;             /* LS_NEEDS_ bits, which emitters set */
} LsEmit;

/* Prints one line. A line that starts with '}' is indented one level less; after a line that ends
 * with '{' the indent grows by one level. */
__attribute__((format(printf, 2, 3)))
void ls_emit_line(LsEmit *e, const char *fmt, ...);

/* The text without its marks, for places where numbers must stay constants. */
const char *ls_unmarked(LsArena *a, const char *text);

/* Prints s as a C string literal, quotes included; NULL prints as the empty string. */
void ls_emit_string(FILE *to, const char *s);

/* Prints s, a name that a file gives, as a part of a comment: it neither ends the comment nor
 * begins another, and stays on its line. NULL prints nothing. */
void ls_emit_comment(FILE *to, const char *s);

#endif
