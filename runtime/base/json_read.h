/* runtime/base/json_read.h -- the subset of JSON for logs and checkpoints. */
#ifndef LS_RUNTIME_BASE_JSON_READ_H
#define LS_RUNTIME_BASE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Buffered text output: a full buffer goes to `put`, so texts and names may have any length.
 * ls_text_flush writes the rest. */
typedef struct LsText {
    char *at;
    size_t n, cap;
    void (*put)(void *to, const void *data, size_t n);
    void *to;
} LsText;

/* Formats one piece, a number or a word, shorter than the buffer. */
__attribute__((format(printf, 2, 3)))
void ls_text_put(LsText *t, const char *fmt, ...);
void ls_text_flush(LsText *t);
/* Adds quotes and escapes; bytes that are not valid UTF-8 pass unchanged. */
void ls_text_string(LsText *t, const char *s);
void ls_text_escaped(LsText *t, const char *s);     /* the same without the quotes */
/* A field of a table with commas: between quotes where it has a character that would end it. */
void ls_text_csv(LsText *t, const char *s);
/* Writes null for a value that is not finite. */
void ls_text_number(LsText *t, double v, int digits);

/* Reading: every function moves *p behind the text that it read. It returns false on other text and
 * at the end. */
typedef struct LsJson { const char *p, *end; } LsJson;

bool ls_json_char(LsJson *j, char c);           /* skips blanks before */
bool ls_json_string(LsJson *j, char *to, size_t cap);
bool ls_json_int(LsJson *j, int64_t *v);        /* a non-negative integer */
bool ls_json_skip(LsJson *j);                   /* any value, nested at most 32 deep */

#endif
