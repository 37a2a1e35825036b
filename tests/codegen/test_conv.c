/* tests/codegen/test_conv.c -- generated convolutions and their gradients against plain loops in
 * double. */
#include "tests/support/conv_cases.h"
#include "tests/support/dot16_units.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

/* Vectors of this processor, with fused multiply-adds; -O2 where the whole set runs. */
#define VECTORS                                                                                    \
    (tests_do_all() ? "-O2 -march=native" : "-O1 -fexpensive-optimizations -march=native")
#define NARROW_VECTORS                                                                             \
    (tests_do_all() ? "-O2 -march=native -mno-avx512f"                                             \
                    : "-O1 -fexpensive-optimizations -march=native -mno-avx512f")

/* The k-th case of the object. */
static void check_case(const HObject *o, int k, int i, HNode *const node[3], double tolerance)
{
    Sample s = sample_new(&cases[i]);
    h_check(o, 3 * k, node[0], LS_K_CONV, (const double *[]){s.x, s.w, s.bias}, s.dy, tolerance);
    h_check(o, 3 * k + 1, node[1], LS_K_CONV, (const double *[]){s.y, s.w, s.bias}, s.dx,
            tolerance);
    h_check(o, 3 * k + 2, node[2], LS_K_CONV, (const double *[]){s.y, s.x}, s.dw, tolerance);
    sample_free(&s);
}

/* Stores images and weights in 16 bits; gradients of weights stay real. */
static void narrow(HNode *const node[3], LsType type)
{
    for (int k = 0; k < 3; k++) {
        node[k]->node[1].rounds = node[k]->value[1].type = node[k]->value[2].type = type;
        node[k]->value[node[k]->node[1].nin + 1].type = k < 2 ? type : LS_REAL;
    }
}

/* Every case from `first` on, so many apart. */
static void check_types(const char *cc, const char *flags, int real_bytes, bool direct, int first,
                        int apart, LsType type)
{
    HNode *node[3 * NCASES] = {0};
    int n = 0;
    h_coarse = type != LS_REAL;
    for (int i = first; i < NCASES; i += apart, n++) {
        nodes_of(&cases[i], node + 3 * n);
        narrow(node + 3 * n, type);
    }
    double tolerance = type == LS_BF16   ? 0x1p-8
                       : type == LS_F16  ? 0x1p-11
                       : real_bytes == 8 ? 1e-14
                       : direct          ? 4e-6
                                         : 2e-5;
    HObject o = h_build(cc, flags, real_bytes, direct, 3 * n, node);
    for (int k = 0; k < n; k++)
        check_case(&o, k, first + k * apart, node + 3 * k, tolerance);
    for (int k = 0; k < 3 * n; k++)
        h_free(node[k]);
    dlclose(o.so);
}

static void check_some(const char *cc, const char *flags, int real_bytes, bool direct, int first,
                       int apart)
{
    check_types(cc, flags, real_bytes, direct, first, apart, LS_REAL);
}

/* All cases by whole sets, else every fourth one, from 0 to 3 on: they differ between the ways to
 * compile, and one of these, at -O3, has them all. */
static void check_all(const char *cc, const char *flags, int real_bytes, bool direct, int first)
{
    if (tests_do_all())
        check_some(cc, flags, real_bytes, direct, 0, 1);
    else
        check_some(cc, flags, real_bytes, direct, first, 4);
}

START_TEST(convolutions_are_right_in_16_bits)
{
    check_types("cc", "-O1 -march=native", 4, false, tests_do_all() ? 0 : 2 * _i,
                tests_do_all() ? 1 : 4, _i == 0 ? LS_BF16 : LS_F16);
}
END_TEST
START_TEST(convolutions_are_right_without_optimisation) { check_all("cc", "-O1", 4, false, 2); }
END_TEST
START_TEST(convolutions_are_right_for_this_processor)
{
    check_some("cc", "-O3 -march=native", 4, false, 0, 1);
}
END_TEST
START_TEST(direct_convolutions_are_closer) { check_all("cc", VECTORS, 4, true, 1); }
END_TEST
START_TEST(convolutions_are_right_in_double) { check_all("cc", VECTORS, 8, false, 0); }
END_TEST
START_TEST(convolutions_are_right_with_narrow_vectors)
{
    check_all("cc", NARROW_VECTORS, 4, false, 3);
}
END_TEST
START_TEST(convolutions_are_right_with_clang)
{
    if (system("command -v clang >/dev/null") != 0)
        printf("skipped: no clang\n");
    else
        check_all("clang", "-O2 -march=native", 4, false, 0);
}
END_TEST

/* Runs the nodes of n cases by all units of an order, and frees them. */
static void check_units(int order, int n, HNode *const node[])
{
    Units u = units_new(order, 3 * n, node);
    for (int i = 0; i < 3 * n; i++) {
        for (int kind = 0; kind < UNIT_KINDS; kind++) {
            double *in[3];
            units_free(units_run(&u, i, node[i], LS_K_CONV, kind, in), in);
        }
        h_free(node[i]);
    }
}

/* Blocks of several depths, odd depths, channels that are no pairs, phases, few positions, splits,
 * groups, 1-D. */
START_TEST(units_of_dot_products_agree)
{
    static const int some[] = {0, 2, 6, 11, 13, 17, 23, 24, 30};
    enum { SOME = sizeof some / sizeof *some };
    HNode *node[3 * NCASES];
    int n = tests_do_all() ? NCASES : SOME;
    for (int i = 0; i < n; i++)
        nodes_of(&cases[tests_do_all() ? i : some[i]], node + 3 * i);
    check_units(_i, n, node);
}
END_TEST

/* Channels that AMX tiles load from lines of the source: blocks of several images, of a part of
 * one, of one long line, groups, phases, gaps between taps, more columns than a block of the weight
 * gradient has, few positions. */
START_TEST(units_of_dot_products_agree_on_whole_tiles)
{
    static const Case lines[] = {
        {2, 3, 2, 64, 64, {9, 13}, ALL(3), ALL(1), ALL(1), {0, 1}, {2, 0}, true},
        {2, 2, 1, 32, 32, {11, 12}, ALL(3), ALL(2), ALL(1), ALL(1), ALL(1), true},
        {2, 1, 1, 128, 33, {21, 19}, ALL(3), ALL(1), {2, 3}, ALL(2), ALL(3), false},
        {2, 1, 1, 32, 32, {3, 400}, {3, 2}, ALL(1), ALL(1), {1, 0}, ALL(1), true},
        {2, 2, 1, 64, 32, {6, 5}, ALL(2), ALL(2), ALL(1), ALL(0), ALL(0), true},
        {2, 2, 1, 256, 288, {4, 5}, {3, 3}, ALL(1), ALL(1), ALL(1), ALL(1), true}};
    enum { LINES = sizeof lines / sizeof *lines };
    HNode *node[3 * LINES];
    for (int i = 0; i < LINES; i++)
        nodes_of(&lines[i], node + 3 * i);
    check_units(TILES, LINES, node);
}
END_TEST

/* In bfloat16, direct convolutions of the speed `rate` are preferred where Winograd's algorithm
 * saves less. */
START_TEST(fast_dot_products_compete_with_winograd)
{
    static const Case some[] = {
        {2, 1, 1, 48, 64, {30, 29}, ALL(3), ALL(1), ALL(1), ALL(1), ALL(1), true},
        {2, 4, 1, 256, 256, {56, 56}, ALL(3), ALL(1), ALL(1), ALL(1), ALL(1), true}};
    const double rate[] = {0, 1, 2, 8};
    const LsEmitter *conv = ls_emitter_of(LS_TARGET_CPU, LS_K_CONV);
    int winograd[2][4] = {{0}};
    for (int i = 0; i < 2; i++) {
        HNode *node[3];
        nodes_of(&some[i], node);
        for (int k = 0; k < 3; k++) {
            for (int brain = 0; brain < 2; brain++)
                for (int r = 0; r < 4; r++) {
                    const LsTarget t = {.real_bytes = 4, .dot_rate = rate[r]};
                    node[k]->node[1].rounds = brain ? LS_BF16 : LS_REAL;
                    winograd[brain][r] +=
                        conv->way(&node[k]->g, (LsNodeId){1}, &t) == LS_WAY_WINOGRAD;
                }
            h_free(node[k]);
        }
    }
    ck_assert_int_eq(winograd[0][0], 6);
    for (int r = 0; r < 4; r++)
        ck_assert_int_eq(winograd[0][r], winograd[0][0]);
    ck_assert_int_eq(winograd[1][0], winograd[0][0]);
    ck_assert_int_eq(winograd[1][1], winograd[0][0]);
    ck_assert_int_lt(winograd[1][2], winograd[1][1]);
    ck_assert_int_gt(winograd[1][2], 0);
    ck_assert_int_eq(winograd[1][3], 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("conv");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, fast_dot_products_compete_with_winograd);
    tcase_add_test(tc, direct_convolutions_are_closer);
    tcase_add_test(tc, convolutions_are_right_in_double);
    if (tests_do_less())        /* which see nothing of what is compiled */
        return run_tests("conv", tc);
    tcase_add_loop_test(tc, convolutions_are_right_in_16_bits, 0, 2);
    tcase_add_loop_test(tc, units_of_dot_products_agree, 0, ORDERS);
    tcase_add_test(tc, units_of_dot_products_agree_on_whole_tiles);
    tcase_add_test(tc, convolutions_are_right_without_optimisation);
    tcase_add_test(tc, convolutions_are_right_for_this_processor);
    tcase_add_test(tc, convolutions_are_right_with_narrow_vectors);
    tcase_add_test(tc, convolutions_are_right_with_clang);
    return run_tests("conv", tc);
}
