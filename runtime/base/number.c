/* runtime/base/number.c -- see number.h. */
#include "runtime/base/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

bool ls_number_real(const char *text, double least, double most, double *v)
{
    char *end;
    double x = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(x) || x < least || x > most)
        return false;
    *v = x;
    return true;
}

bool ls_number_whole(const char *text, int64_t least, int64_t most, int64_t *v)
{
    char *end;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || x < least || x > most)
        return false;
    *v = x;
    return true;
}
