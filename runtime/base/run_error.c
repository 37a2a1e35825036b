/* runtime/base/run_error.c -- see run_error.h. */
#include "runtime/base/run_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Shortens a long text in the middle: the reason is mostly at the end, behind names of any
 * length. */
static void keep_ends(LsError *e, const char *whole, size_t n)
{
    static const char gap[] = " ... ";
    const size_t room = sizeof e->text - 1, half = (room - sizeof gap) / 2;
    memcpy(e->text, whole, half);
    snprintf(e->text + half, room - half, "%s%s", gap, whole + n - half);
}

static void set_text(LsError *e, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
    char *whole = n >= (int)sizeof e->text ? malloc((size_t)n + 1) : NULL;
    if (whole) {
        vsnprintf(whole, (size_t)n + 1, fmt, again);
        keep_ends(e, whole, (size_t)n);
        free(whole);
    }
    va_end(again);
}

bool ls_fail(LsError *e, LsExit code, const char *fmt, ...)
{
    va_list ap;
    if (e->code != LS_EXIT_DONE)
        return false;
    e->code = code;
    va_start(ap, fmt);
    set_text(e, fmt, ap);
    va_end(ap);
    return false;
}

void ls_make_printable(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}
