/* runtime/base/seed_mix.h -- numbers by chance, the same for the same seed. */
#ifndef LS_RUNTIME_BASE_SEED_MIX_H
#define LS_RUNTIME_BASE_SEED_MIX_H

#include <stdint.h>

/* SplitMix64's finaliser: keys that follow each other give bits that have nothing in common. */
static inline uint64_t ls_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

#endif
