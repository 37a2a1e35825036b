/* tests/support/named_number.h -- numbers to fill the values of a graph with. */
#ifndef LS_TESTS_SUPPORT_NAMED_NUMBER_H
#define LS_TESTS_SUPPORT_NAMED_NUMBER_H

#include <stdint.h>

/* A number in -1..1 that depends on the name and the place alone. */
static inline double number(const char *name, int64_t i)
{
    uint64_t z = 1469598103934665603u;
    for (const char *c = name; *c != '\0'; c++)
        z = (z ^ (uint8_t)*c) * 1099511628211u;
    z = (z + (uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9u;
    return (double)(int64_t)(z >> 40) / 8388608 - 1;
}

#endif
