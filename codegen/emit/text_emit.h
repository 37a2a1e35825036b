/* codegen/emit/text_emit.h -- text output: one line at a time, indented by the braces so far. */
#ifndef LS_CODEGEN_EMIT_TEXT_EMIT_H
#define LS_CODEGEN_EMIT_TEXT_EMIT_H

#include <stdio.h>

typedef struct LsEmit { FILE *to; int depth; } LsEmit;

/* A line that starts with '}' is indented one less, one that ends with '{'
 * one more for what follows. */
__attribute__((format(printf, 2, 3)))
void ls_emit_line(LsEmit *e, const char *fmt, ...);

/* s as a literal of C, quotes included; NULL is empty. */
void ls_emit_string(FILE *to, const char *s);

#endif
