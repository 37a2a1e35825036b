/* runtime/error.c -- see error.h. */
#include "runtime/error.h"

#include <stdarg.h>
#include <stdio.h>

bool ls_fail(LsError *e, LsExit code, const char *fmt, ...)
{
    va_list ap;
    if (e->code != LS_EXIT_DONE)
        return false;
    e->code = code;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    return false;
}
