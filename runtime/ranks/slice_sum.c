/* runtime/ranks/slice_sum.c -- see slice_sum.h. */
#include "runtime/ranks/slice_sum.h"

#include <string.h>

enum { BLOCK = 4096 };          /* bytes that are added at a time: a unit */

typedef struct Slices {
    const char *const *part;
    int n;
    int64_t from, bytes;
    int real_bytes;
    char *to;
} Slices;

static void add(char *to, const char *more, int64_t bytes, int real_bytes)
{
    if (real_bytes == 8) {
        double *a = (double *)(void *)to;
        const double *b = (const double *)(const void *)more;
        for (int64_t i = 0; i < bytes / 8; i++)
            a[i] = a[i] + b[i];
    } else {
        float *a = (float *)(void *)to;
        const float *b = (const float *)(const void *)more;
        for (int64_t i = 0; i < bytes / 4; i++)
            a[i] = a[i] + b[i];
    }
}

/* to = the sum of n parts from the first on: that of the largest power of two below n, plus that of
 * the others. */
static void sum(const Slices *s, int first, int n, int64_t at, int64_t bytes, char *to)
{
    _Alignas(64) char rest[BLOCK];
    int left = 1;
    if (n == 1) {
        memcpy(to, s->part[first] + s->from + at, (size_t)bytes);
        return;
    }
    while (2 * left < n)
        left *= 2;
    sum(s, first, left, at, bytes, to);
    sum(s, first + left, n - left, at, bytes, rest);
    add(to, rest, bytes, s->real_bytes);
}

static void units(LsRun *run, void *const arg[], int64_t lo, int64_t hi)
{
    const Slices *s = arg[0];
    _Alignas(64) char block[BLOCK];
    (void)run;
    for (int64_t at = lo * BLOCK; at < hi * BLOCK && at < s->bytes; at += BLOCK) {
        const int64_t bytes = s->bytes - at < BLOCK ? s->bytes - at : BLOCK;
        sum(s, 0, s->n, at, bytes, block);
        memcpy(s->to + at, block, (size_t)bytes);
    }
}

void ls_slice_sum(LsRun *run, const char *const part[], int n, int64_t from, int64_t bytes,
                  int real_bytes, char *to)
{
    Slices s = {part, n, from, bytes, real_bytes, to};
    void *const arg[] = {&s};
    ls_parallel(run, units, (bytes + BLOCK - 1) / BLOCK, arg);
}
