/* tests/codegen/test_matmul.c -- generated matrix products against a triple loop in double
 * precision. */
#include "tests/support/dot16_units.h"
#include "tests/support/less.h"
#include "tests/support/matmul_cases.h"
#include "tests/support/suite.h"

#include <signal.h>

/* Vectors of this processor, with fused multiply-adds; -O2 where the whole set runs. */
#define VECTORS                                                                                    \
    (tests_do_all() ? "-O2 -march=native" : "-O1 -fexpensive-optimizations -march=native")
#define NARROW_VECTORS                                                                             \
    (tests_do_all() ? "-O2 -march=native -mno-avx512f"                                             \
                    : "-O1 -fexpensive-optimizations -march=native -mno-avx512f")

/* narrow: the type of A and B, and mostly of C; LS_REAL: all are reals. */
static void check_types(const char *cc, const char *flags, int real_bytes, LsType narrow)
{
    HNode *node[NCASES];
    h_coarse = narrow != LS_REAL;
    for (int i = 0; i < NCASES; i++) {
        node[i] = node_of(&cases[i]);
        node[i]->node[1].rounds = node[i]->value[1].type = node[i]->value[2].type = narrow;
        node[i]->value[4].type = i % 3 > 0 ? narrow : LS_REAL;      /* weight gradients stay real */
    }
    HObject o = h_build(cc, flags, real_bytes, false, NCASES, node);
    for (int i = 0; i < NCASES; i++) {
        double *in[3];
        for (int k = 0; k < 3; k++)
            in[k] =
                h_random(node[i]->operand[k].i != 0 ? ls_count(&node[i]->value[k + 1].shape) : 0,
                         (uint64_t)(10 * i + k));
        double *want = reference(&cases[i], node[i], (const double *const *)in);
        h_check(&o, i, node[i], LS_K_MATMUL, (const double *const *)in, want,
                node[i]->value[4].type == LS_BF16  ? 0x1p-8
                : node[i]->value[4].type == LS_F16 ? 0x1p-11
                : real_bytes == 4                  ? 2e-6
                                                   : 1e-14);
        for (int k = 0; k < 3; k++)
            free(in[k]);
        free(want);
        h_free(node[i]);
    }
    dlclose(o.so);
}

static void check_all(const char *cc, const char *flags, int real_bytes)
{
    check_types(cc, flags, real_bytes, LS_REAL);
}

START_TEST(products_are_right_in_16_bits)
{
    check_types("cc", "-O1 -march=native", 4, _i == 0 ? LS_BF16 : LS_F16);
}
END_TEST
START_TEST(products_are_right_without_optimisation) { check_all("cc", "-O1", 4); }
END_TEST
START_TEST(products_are_right_for_this_processor) { check_all("cc", "-O3 -march=native", 4); }
END_TEST
START_TEST(products_are_right_in_double) { check_all("cc", VECTORS, 8); }
END_TEST
START_TEST(products_are_right_with_narrow_vectors)
{
    check_all("cc", NARROW_VECTORS, 4);
}
END_TEST
START_TEST(products_are_right_with_clang)
{
    if (system("command -v clang >/dev/null") != 0)
        printf("skipped: no clang\n");
    else
        check_all("clang", "-O2 -march=native", 4);
}
END_TEST

/* Without the instruction, sums with subnormal products are rounded differently. */
static bool has_multiply_add(void)
{
#if defined __x86_64__
    return __builtin_cpu_supports("fma");
#else
    return true;
#endif
}

static float flushed(float x) { return fabsf(x) < FLT_MIN ? copysignf(0, x) : x; }

/* sum + a * b as the processor's dot products do it. */
static float multiply_add(float a, float b, float sum)
{
    return flushed(fmaf(flushed(a), flushed(b), flushed(sum)));
}

/* Pairs of multiply-adds, and a single one at the end: k products, of one block. */
static float sum_of_pairs(const double *a, const double *b, int64_t n)
{
    float sum = 0;
    for (int64_t k = 0; k < n; k += 2) {
        if (k + 1 < n)
            sum = multiply_add((float)a[k + 1], (float)b[k + 1], sum);
        sum = multiply_add((float)a[k], (float)b[k], sum);
    }
    return 0 + sum;
}

/* Of each 32 products the even and the odd ones apart, both, and that and the sum before: as
 * TDPBF16PS. */
static float sum_of_tiles(const double *a, const double *b, int64_t n)
{
    float sum = 0;
    for (int64_t tile = 0; tile < n; tile += 32) {
        float part[2] = {0, 0};
        for (int64_t k = tile; k < n && k < tile + 32; k++)
            part[k % 2] = multiply_add((float)a[k], (float)b[k], part[k % 2]);
        sum = multiply_add(1, sum, multiply_add(1, part[0], part[1]));
    }
    return sum;
}

/* c = a * b' has the bits of the order. */
static void check_order(int order, const Case *c, const double *const in[], const float *got)
{
    for (int64_t q = 0; q < c->m * c->n; q++) {
        const double *a = in[0] + q / c->n * c->k, *b = in[1] + q % c->n * c->k;
        const float sum = order == TILES ? sum_of_tiles(a, b, c->k) : sum_of_pairs(a, b, c->k);
        ck_assert_msg(unit_bits(LS_REAL, got, q) == unit_bits(LS_REAL, &sum, 0), "%a, not %a",
                      (double)got[q], (double)sum);
    }
}

START_TEST(units_of_dot_products_agree)
{
    static const Case plain[] = {{13, 33, 24, 0, 1, 0, 1, {0}, {0}},
                                 {13, 33, 37, 0, 1, 0, 1, {0}, {0}},
                                 {13, 33, 130, 0, 1, 0, 1, {0}, {0}}};
    enum { PLAIN = 3 };
    HNode *node[NCASES + PLAIN] = {node_of(&plain[0]), node_of(&plain[1]), node_of(&plain[2])};
    int n = PLAIN;
    for (int i = 0; i < NCASES; i++)
        if (tests_do_all() || i % 6 == 1)
            node[n++] = node_of(&cases[i]);
    Units u = units_new(_i, n, node);
    for (int i = 0; i < n; i++)
        for (int kind = 0; kind < UNIT_KINDS; kind++) {
            double *in[3];
            float *got = units_run(&u, i, node[i], LS_K_MATMUL, kind, in);
            if (i < PLAIN && has_multiply_add())
                check_order(_i, &plain[i], (const double *const *)in, got);
            units_free(got, in);
        }
    for (int i = 0; i < n; i++)
        h_free(node[i]);
}
END_TEST

/* Linux refuses the tiles to a process whose stack for signals has no room for them. */
START_TEST(refused_tiles_are_emulated)
{
#if defined __x86_64__ && defined __linux__
    static const Case plain = {45, 33, 130, 0, 1, 0, 1, {0}, {0}};
    static char small[2048], said[256];
    HNode *node[] = {node_of(&plain)};
    double *in[3];
    if (!has_last_unit(TILES)) {
        printf("skipped: this processor has no AMX tiles\n");
        return;
    }
    ck_assert_int_eq(sigaltstack(&(stack_t){.ss_sp = small, .ss_size = sizeof small}, NULL), 0);
    FILE *const err = tmpfile();
    ck_assert(err != NULL && dup2(fileno(err), STDERR_FILENO) == STDERR_FILENO);
    const Units u = units_new(TILES, 1, node);
    float *got = units_run(&u, 0, node[0], LS_K_MATMUL, USUAL, in);
    check_order(TILES, &plain, (const double *const *)in, got);
    rewind(err);
    ck_assert(fgets(said, sizeof said, err) != NULL);
    ck_assert_ptr_nonnull(strstr(said, "refuses AMX tiles"));
    ck_assert_ptr_null(fgets(said, sizeof said, err));
    units_free(got, in);
    h_free(node[0]);
    fclose(err);
#endif
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("matmul");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, products_are_right_without_optimisation);
    tcase_add_test(tc, products_are_right_in_double);
    if (tests_do_less())        /* which see nothing of what is compiled */
        return run_tests("matmul", tc);
    tcase_add_loop_test(tc, products_are_right_in_16_bits, 0, 2);
    tcase_add_loop_test(tc, units_of_dot_products_agree, 0, ORDERS);
    tcase_add_test(tc, refused_tiles_are_emulated);
    tcase_add_test(tc, products_are_right_for_this_processor);
    tcase_add_test(tc, products_are_right_with_narrow_vectors);
    tcase_add_test(tc, products_are_right_with_clang);
    return run_tests("matmul", tc);
}
