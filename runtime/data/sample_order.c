/* runtime/data/sample_order.c -- see sample_order.h. */
#include "runtime/data/sample_order.h"

#include "runtime/base/seed_mix.h"

/* A Feistel network on the smallest even number of bits that holds n, iterated until the result is
 * below n. */
int64_t ls_shuffled(uint64_t seed, int64_t epoch, int64_t n, int64_t i)
{
    int half = 1;
    while (half < 31 && (int64_t)1 << 2 * half < n)
        half++;
    uint64_t low = ((uint64_t)1 << half) - 1, x = (uint64_t)i;
    uint64_t key = ls_mix(ls_mix(seed + 0x9e3779b97f4a7c15u) + (uint64_t)epoch);
    do {
        for (uint64_t round = 0; round < 6; round++) {
            uint64_t right = x & low;
            x = right << half | ((x >> half ^ ls_mix(key + (round << 32 | right))) & low);
        }
    } while (x >= (uint64_t)n);
    return (int64_t)x;
}
