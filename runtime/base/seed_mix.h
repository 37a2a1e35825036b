/* runtime/base/seed_mix.h -- pseudo-random bits, the same for the same seed. */
#ifndef LS_RUNTIME_BASE_SEED_MIX_H
#define LS_RUNTIME_BASE_SEED_MIX_H

#include <stdint.h>

/* SplitMix64's finaliser: consecutive keys give unrelated bits. */
static inline uint64_t ls_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

#endif
