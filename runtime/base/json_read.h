/* runtime/base/json_read.h -- the little JSON that logs and checkpoints need. */
#ifndef LS_RUNTIME_BASE_JSON_READ_H
#define LS_RUNTIME_BASE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text on its way to a file: a full buffer is handed on to `put`, so texts and names may have any
 * length. ls_text_flush hands on the rest. */
typedef struct LsText {
    char *at;
    size_t n, cap;
    void (*put)(void *to, const void *data, size_t n);
    void *to;
} LsText;

/* One piece: numbers and words, shorter than the buffer. */
__attribute__((format(printf, 2, 3)))
void ls_text_put(LsText *t, const char *fmt, ...);
void ls_text_flush(LsText *t);
/* With quotes and escapes; bytes that are not UTF-8 text are passed on. */
void ls_text_string(LsText *t, const char *s);
void ls_text_escaped(LsText *t, const char *s);     /* the same without the quotes */
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
