/* runtime/base/fnv64.h -- FNV-1a of 64 bits (Fowler, Noll and Vo). */
#ifndef LS_RUNTIME_BASE_FNV64_H
#define LS_RUNTIME_BASE_FNV64_H

#include <stddef.h>
#include <stdint.h>

#define LS_FNV64 UINT64_C(0xcbf29ce484222325)

/* The first call starts with LS_FNV64, a later call with the result of the call before. */
static inline uint64_t ls_fnv64(uint64_t sum, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ p[i]) * UINT64_C(0x100000001b3);
    return sum;
}

#endif
