/* base/plain_text.h -- text with names from a file that someone else wrote, for a terminal. */
#ifndef LS_BASE_PLAIN_TEXT_H
#define LS_BASE_PLAIN_TEXT_H

#include <stdarg.h>
#include <stdio.h>

/* Prints s, a line at most: control characters and bytes that are not UTF-8 as \xNN, and the middle
 * of words of more than 400 bytes as "...". */
void ls_plain_text(FILE *to, const char *s);

/* Likewise a formatted text, whose arguments are a file's names. */
__attribute__((format(printf, 2, 3))) void ls_plain_printf(FILE *to, const char *fmt, ...);
__attribute__((format(printf, 2, 0))) void ls_plain_vprintf(FILE *to, const char *fmt, va_list ap);

/* Prints JSON text, lines and all, whose strings may hold such bytes: they become \\xNN, which a
 * reader sees as \xNN. */
void ls_plain_json(FILE *to, const char *json);

#endif
