/* tests/runtime/test_f16c.c -- rows of float16 have the same bits by the machine's instructions and
 * by portable code. Built for each set of instructions; skipped on a machine that lacks it. */
#include <check.h>

#include "runtime/kernels/ls_vector.h"
#include "tests/support/suite.h"

#if defined __F16C__
#include <cpuid.h>
#endif
#include <stdio.h>

enum { ALL = 1 << 16, TAIL = 5 };

START_TEST(all_numbers_are_widened_alike)
{
    static ls_f16 from[ALL + TAIL];
    static float to[ALL + TAIL];
    for (uint32_t i = 0; i < ALL + TAIL; i++)
        from[i].bits = (uint16_t)i;
    ls_widen(LS_STORED_F16, to, from, ALL + TAIL);
    for (uint32_t i = 0; i < ALL + TAIL; i++)
        ck_assert_msg(ls_bits32(to[i]) == ls_bits32(ls_from_f16(from[i])), "%04x: %08x",
                      from[i].bits, ls_bits32(to[i]));
}
END_TEST

/* Every exponent and sign; mantissas near the borders of rounding, and others. */
START_TEST(floats_are_rounded_alike)
{
    enum { MANTISSAS = 1 << 13 };
    static float from[MANTISSAS + TAIL];
    static ls_f16 to[MANTISSAS + TAIL];
    uint32_t state = 1;
    for (uint32_t top = 0; top < 512; top++) {
        for (uint32_t i = 0; i < MANTISSAS + TAIL; i++) {
            state = state * 1664525u + 1013904223u;
            /* a number, or a middle */
            uint32_t near = (state >> 8 & 0x7fe000u) + (i % 2 << 12) + (state >> 5) % 3 - 1;
            from[i] = ls_float32(top << 23 | ((i & 4) == 0 ? near & 0x7fffffu : state >> 9));
        }
        ls_give(LS_STORED_F16, to, 0, from, MANTISSAS + TAIL);
        for (uint32_t i = 0; i < MANTISSAS + TAIL; i++) {
            const uint16_t want = ls_to_f16(ls_nearest_f16(from[i])).bits;
            ck_assert_msg(to[i].bits == want, "%08x: %04x, not %04x", ls_bits32(from[i]),
                          to[i].bits, want);
        }
    }
}
END_TEST

int main(void)
{
#if defined __F16C__
    unsigned a, b, features = 0, d;
    __get_cpuid(1, &a, &b, &features, &d);
    if (!(features & bit_F16C) || (LS_F16C == 16 && !__builtin_cpu_supports("avx512f"))) {
        printf("skipped: this processor lacks the instructions\n");
        return 77;
    }
#endif
    const TTest *test[] = {all_numbers_are_widened_alike, floats_are_rounded_alike};
    TCase *tc = tcase_create("f16c");
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("f16c", tc);
}
