/* base/reason.c */
#include "base/reason.h"

#include <inttypes.h>
#include <stdarg.h>

bool ls_why(const LsWhy *why, const char *fmt, ...)
{
    int n = why->at != NULL
                ? snprintf(why->text, why->size, "%s %" PRIu32 ": ", why->at, why->number)
                : 0;
    va_list ap;
    va_start(ap, fmt);
    if (n >= 0 && (size_t)n < why->size)
        vsnprintf(why->text + n, why->size - (size_t)n, fmt, ap);
    va_end(ap);
    return false;
}
