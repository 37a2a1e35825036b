/* runtime/base/json_read.c -- see json_read.h. RFC 8259; numbers are read as non-negative integers
 * only. */
#include "runtime/base/json_read.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void ls_text_flush(LsText *t)
{
    t->put(t->to, t->at, t->n);
    t->n = 0;
}

void ls_text_put(LsText *t, const char *fmt, ...)
{
    for (int try = 0; try < 2; try++) {
        va_list ap;
        size_t room = t->cap - t->n;
        va_start(ap, fmt);
        int n = vsnprintf(t->at + t->n, room, fmt, ap);
        va_end(ap);
        if (n >= 0 && (size_t)n < room) {
            t->n += (size_t)n;
            return;
        }
        ls_text_flush(t);
    }
    assert(!"a piece of text is longer than its buffer");
}

static void put_char(LsText *t, char c)
{
    if (t->n == t->cap)
        ls_text_flush(t);
    t->at[t->n++] = c;
}

void ls_text_escaped(LsText *t, const char *s)
{
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            ls_text_put(t, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            ls_text_put(t, "\\u%04x", (unsigned)*s);
        else
            put_char(t, *s);
    }
}

void ls_text_string(LsText *t, const char *s)
{
    put_char(t, '"');
    ls_text_escaped(t, s);
    put_char(t, '"');
}

void ls_text_csv(LsText *t, const char *s)
{
    const bool quoted = strpbrk(s, ",\";\r\n\t ") != NULL;
    ls_text_put(t, quoted ? "\"" : "");
    for (; *s; s++) {
        if (*s == '"')
            put_char(t, '"');
        put_char(t, *s);
    }
    ls_text_put(t, quoted ? "\"" : "");
}

void ls_text_number(LsText *t, double v, int digits)
{
    if (isfinite(v))
        ls_text_put(t, "%.*g", digits, v);
    else
        ls_text_put(t, "null");
}

static void blanks(LsJson *j)
{
    while (j->p < j->end && strchr(" \t\r\n", *j->p) && *j->p)
        j->p++;
}

bool ls_json_char(LsJson *j, char c)
{
    blanks(j);
    if (j->p == j->end || *j->p != c)
        return false;
    j->p++;
    return true;
}

static bool hex4(LsJson *j, unsigned *v)
{
    *v = 0;
    if (j->end - j->p < 4)
        return false;
    for (int k = 0; k < 4; k++) {
        char c = *j->p++;
        int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (d < 0)
            return false;
        *v = *v * 16 + (unsigned)d;
    }
    return true;
}

/* The second half of a pair of surrogates, if the first one was `high`; else nothing is taken. */
static bool low_surrogate(LsJson *j, unsigned high, unsigned *v)
{
    LsJson at = *j;
    unsigned low;
    if (high < 0xd800 || high > 0xdbff || at.end - at.p < 6 || at.p[0] != '\\' || at.p[1] != 'u')
        return false;
    at.p += 2;
    if (!hex4(&at, &low) || low < 0xdc00 || low > 0xdfff)
        return false;
    *v = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    *j = at;
    return true;
}

/* One character of a string, as UTF-8 bytes. */
static bool unescape(LsJson *j, char out[4], size_t *n)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    unsigned v;
    *n = 1;
    if (*j->p != '\\') {
        out[0] = *j->p++;
        return true;
    }
    if (++j->p == j->end)
        return false;
    const char *k = *j->p ? strchr(from, *j->p) : NULL;
    if (k) {
        out[0] = to[k - from];
        j->p++;
        return true;
    }
    if (*j->p++ != 'u' || !hex4(j, &v) || v == 0)       /* a zero would end the string early */
        return false;
    if (v < 0x80) {
        out[0] = (char)v;
    } else if (v < 0x800) {
        out[0] = (char)(0xc0 | v >> 6);
        out[1] = (char)(0x80 | (v & 63));
        *n = 2;
    } else if (low_surrogate(j, v, &v)) {
        out[0] = (char)(0xf0 | v >> 18);
        out[1] = (char)(0x80 | (v >> 12 & 63));
        out[2] = (char)(0x80 | (v >> 6 & 63));
        out[3] = (char)(0x80 | (v & 63));
        *n = 4;
    } else {
        out[0] = (char)(0xe0 | v >> 12);
        out[1] = (char)(0x80 | (v >> 6 & 63));
        out[2] = (char)(0x80 | (v & 63));
        *n = 3;
    }
    return true;
}

bool ls_json_string(LsJson *j, char *to, size_t cap)
{
    size_t at = 0;
    if (!ls_json_char(j, '"'))
        return false;
    while (j->p < j->end && *j->p != '"') {
        char c[4];
        size_t n;
        if (!unescape(j, c, &n) || at + n >= cap)
            return false;
        memcpy(to + at, c, n);
        at += n;
    }
    to[at] = '\0';
    return ls_json_char(j, '"');
}

bool ls_json_int(LsJson *j, int64_t *v)
{
    blanks(j);
    const char *start = j->p;
    *v = 0;
    for (; j->p < j->end && *j->p >= '0' && *j->p <= '9'; j->p++)
        if (__builtin_mul_overflow(*v, (int64_t)10, v)
            || __builtin_add_overflow(*v, (int64_t)(*j->p - '0'), v))
            return false;
    return j->p > start;
}

static bool skip_string(LsJson *j)
{
    for (j->p++; j->p < j->end && *j->p != '"'; j->p++)
        if (*j->p == '\\' && ++j->p == j->end)
            return false;
    return ls_json_char(j, '"');
}

static bool skip(LsJson *j, int depth)
{
    blanks(j);
    if (j->p == j->end || depth == 0)
        return false;
    if (*j->p == '"')
        return skip_string(j);
    if (*j->p == '{' || *j->p == '[') {
        char open = *j->p++, close = open == '{' ? '}' : ']';
        if (ls_json_char(j, close))
            return true;
        do {
            if (!skip(j, depth - 1) ||
                (open == '{' && !(ls_json_char(j, ':') && skip(j, depth - 1))))
                return false;
        } while (ls_json_char(j, ','));
        return ls_json_char(j, close);
    }
    const char *start = j->p;
    while (j->p < j->end && !strchr(",]} \t\r\n", *j->p))
        j->p++;
    return j->p > start;
}

bool ls_json_skip(LsJson *j) { return skip(j, 32); }
