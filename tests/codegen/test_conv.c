/* tests/codegen/test_conv.c -- generated convolutions and their gradients against plain loops in double. */
#include "tests/support/conv_cases.h"
#include "tests/support/suite.h"

static void check_case(const HObject *o, int i, HNode *const node[3], double tolerance)
{
    Sample s = sample_new(&cases[i]);
    h_check(o, 3 * i, node[0], LS_K_CONV, (const double *[]){s.x, s.w, s.bias}, s.dy, tolerance);
    h_check(o, 3 * i + 1, node[1], LS_K_CONV, (const double *[]){s.y, s.w, s.bias}, s.dx, tolerance);
    h_check(o, 3 * i + 2, node[2], LS_K_CONV, (const double *[]){s.y, s.x}, s.dw, tolerance);
    sample_free(&s);
}

static void check_all(const char *cc, const char *flags, int real_bytes, bool direct)
{
    HNode *node[3 * NCASES];
    for (int i = 0; i < NCASES; i++)
        nodes_of(&cases[i], node + 3 * i);
    HObject o = h_build(cc, flags, real_bytes, direct, 3 * NCASES, node);
    for (int i = 0; i < NCASES; i++)
        check_case(&o, i, node + 3 * i, real_bytes == 8 ? 1e-14 : direct ? 4e-6 : 2e-5);
    for (int i = 0; i < 3 * NCASES; i++)
        free(node[i]);
    dlclose(o.so);
}

START_TEST(convolutions_are_right_without_optimisation) { check_all("cc", "-O1", 4, false); }
END_TEST
START_TEST(convolutions_are_right_for_this_processor)
{
    check_all("cc", "-O3 -march=native", 4, false);
}
END_TEST
START_TEST(direct_convolutions_are_closer) { check_all("cc", "-O2 -march=native", 4, true); }
END_TEST
START_TEST(convolutions_are_right_in_double) { check_all("cc", "-O2 -march=native", 8, false); }
END_TEST
START_TEST(convolutions_are_right_with_narrow_vectors)
{
    check_all("cc", "-O2 -march=native -mno-avx512f", 4, false);
}
END_TEST
START_TEST(convolutions_are_right_with_clang)
{
    if (system("command -v clang >/dev/null") != 0)
        printf("skipped: no clang\n");
    else
        check_all("clang", "-O2 -march=native", 4, false);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("conv");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, convolutions_are_right_without_optimisation);
    tcase_add_test(tc, convolutions_are_right_for_this_processor);
    tcase_add_test(tc, direct_convolutions_are_closer);
    tcase_add_test(tc, convolutions_are_right_in_double);
    tcase_add_test(tc, convolutions_are_right_with_narrow_vectors);
    tcase_add_test(tc, convolutions_are_right_with_clang);
    return run_tests("conv", tc);
}
