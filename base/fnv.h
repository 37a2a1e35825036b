/* base/fnv.h -- the hash FNV-1a of 64 bits (Fowler, Noll and Vo), the same on every machine. The
 * runtime includes no other room, so runtime/base/fnv64.h has its own. */
#ifndef LS_BASE_FNV_H
#define LS_BASE_FNV_H

#include <stdint.h>

#define LS_FNV_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t ls_fnv_byte(uint64_t hash, uint8_t byte)
{
    return (hash ^ byte) * UINT64_C(0x100000001b3);
}

/* Hashes a string without its NUL. */
static inline uint64_t ls_fnv_text(uint64_t hash, const char *s)
{
    for (; *s != '\0'; s++)
        hash = ls_fnv_byte(hash, (uint8_t)*s);
    return hash;
}

/* Hashes the eight bytes of a number, the lowest byte first. */
static inline uint64_t ls_fnv_number(uint64_t hash, uint64_t x)
{
    for (int shift = 0; shift < 64; shift += 8)
        hash = ls_fnv_byte(hash, (uint8_t)(x >> shift));
    return hash;
}

#endif
