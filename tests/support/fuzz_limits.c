/* tests/support/fuzz_limits.c -- an allocation that no small file justifies ends the test. The
 * linker sends the program's calls here (--wrap), not those of shared libraries. */
#include "tests/support/fuzz.h"

#include <stdio.h>

static size_t most;             /* bytes; 0: no limit */

void fuzz_allow(size_t bytes) { most = bytes; }

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static void judge(size_t n, size_t size)
{
    size_t bytes;
    if (most == 0 || (!__builtin_mul_overflow(n, size, &bytes) && bytes <= most))
        return;
    fprintf(stderr, "an allocation of %zu x %zu bytes, where %zu are enough\n", n, size, most);
    abort();
}

void *__wrap_malloc(size_t n)
{
    judge(n, 1);
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    judge(n, size);
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    judge(n, 1);
    return __real_realloc(p, n);
}
