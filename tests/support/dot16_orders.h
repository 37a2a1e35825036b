/* tests/support/dot16_orders.h -- the orders of sums of runtime/kernels/ls_dot16.h, and the
 * processors whose instructions have them. */
#ifndef LS_TESTS_SUPPORT_DOT16_ORDERS_H
#define LS_TESTS_SUPPORT_DOT16_ORDERS_H

#include <stdbool.h>
#if defined __x86_64__
#include <cpuid.h>
#endif

enum { PAIRS, TILES, ORDERS };

/* What a processor needs for the last unit of an order. */
static inline bool has_last_unit(int order)
{
#if defined __x86_64__
    unsigned a, b, c, d;
    const bool tiles = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) && (d >> 24 & 1);
    return order == TILES ? tiles && __builtin_cpu_supports("avx512f")
                          : __builtin_cpu_supports("avx512bf16");
#else
    return (void)order, false;
#endif
}

#endif
