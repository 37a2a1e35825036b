/* runtime/json.h -- the little JSON that logs and checkpoints need. */
#ifndef LS_RUNTIME_JSON_H
#define LS_RUNTIME_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text in a fixed buffer; what does not fit sets `full`. */
typedef struct LsText { char *at; size_t n, cap; bool full; } LsText;

__attribute__((format(printf, 2, 3)))
void ls_text_put(LsText *t, const char *fmt, ...);
/* With quotes and escapes; bytes that are not UTF-8 text are passed on. */
void ls_text_string(LsText *t, const char *s);
/* null when it is not finite. */
void ls_text_number(LsText *t, double v, int digits);

/* Reading: every function moves *p behind what it read, and returns false on anything else or at
 * the end. */
typedef struct LsJson { const char *p, *end; } LsJson;

bool ls_json_char(LsJson *j, char c);           /* skips blanks before */
bool ls_json_string(LsJson *j, char *to, size_t cap);
bool ls_json_int(LsJson *j, int64_t *v);        /* a non-negative integer */
bool ls_json_skip(LsJson *j);                   /* any value, nested at most 32 deep */

#endif
