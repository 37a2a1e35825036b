/* tests/runtime/test_kernel_math.c -- the float functions of ls_kernel.h against libm, over values
 * of all magnitudes. */
#include "runtime/kernels/ls_kernel.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

enum { STEPS = 200000 };

static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

typedef struct Case {
    const char *name;
    real (*fast)(real);
    double (*exact)(double);
    float lo, hi;       /* where it is compared */
    double ulp;         /* bound on the error */
} Case;

static const Case cases[] = {
    {"exp", ls_exp, exp, -86.9f, 100, 1.6},
    {"log", ls_log, log, 0, 3.4e38f, 1.2},
    {"log near 1", ls_log, log, 0.5f, 2, 1.2},
    {"log1p", ls_log1p, log1p, -0.999f, 1e30f, 2},
    {"tanh", ls_tanh, tanh, -30, 30, 1.7},
    {"tanh near 0", ls_tanh, tanh, -1, 1, 1.7},
    {"erf", ls_erf, erf, -6, 6, 1.5},
    {"erf near 0", ls_erf, erf, -1, 1, 1.5},
    {"sin", ls_sin, sin, -1.6e38f, 1.6e38f, 1.7},
    {"sin near 0", ls_sin, sin, -7, 7, 1.7},
    {"cos", ls_cos, cos, -1.6e38f, 1.6e38f, 1.7},
    {"cos near 0", ls_cos, cos, -7, 7, 1.7},
    {"tan", ls_tan, tan, -1.6e38f, 1.6e38f, 3},
    {"tan near 0", ls_tan, tan, -7, 7, 3},
    {"sin to 1e7", ls_sin, sin, -1e7f, 1e7f, 1.7},
    {"asin", ls_asin, asin, -1, 1, 2.6},
    {"acos", ls_acos, acos, -1, 1, 2},
    {"atan", ls_atan, atan, -1.6e38f, 1.6e38f, 2.6},
    {"atan near 0", ls_atan, atan, -5, 5, 2.6},
    {"sinh", ls_sinh, sinh, -90, 90, 2.5},
    {"sinh near 0", ls_sinh, sinh, -2, 2, 2.5},
    {"cosh", ls_cosh, cosh, -90, 90, 2.5},
    {"asinh", ls_asinh, asinh, -1.6e38f, 1.6e38f, 3},
    {"asinh near 0", ls_asinh, asinh, -3, 3, 3},
    {"acosh", ls_acosh, acosh, 1, 3.4e38f, 3},
    {"acosh near 1", ls_acosh, acosh, 1, 3, 3},
    {"atanh", ls_atanh, atanh, -1, 1, 3},
    {"sigmoid", ls_sigmoid, sigmoid, -86, 100, 3},
    {"softplus", ls_softplus, softplus, -86, 100, 2.5},
};

/* Half of the values spread evenly over lo .. hi, half with every exponent. */
static float value(const Case *c, uint32_t i)
{
    uint32_t u = i * 2654435761u;
    if (i % 2 == 0)
        return c->lo + (c->hi - c->lo) * ((float)(u >> 8) * 5.9604645e-8f);
    float x = ls_float32(u);
    return x >= c->lo && x <= c->hi ? x : c->lo;
}

static double ulp_of(float x)
{
    return fabsf(x) < 1.17549435e-38f ? 1.4e-45 : ldexp(1, ilogbf(x) - 23);
}

START_TEST(test_functions_are_accurate_to_a_few_units_in_the_last_place)
{
    const Case *c = &cases[_i];
    for (uint32_t i = 0; i < STEPS; i++) {
        float x = value(c, i), got = c->fast(x);
        double want = c->exact(x);
        if (isinf((float)want))
            ck_assert_msg(got == (float)want, "%s(%a) = %g, want %g", c->name, x, got, want);
        else
            ck_assert_msg(fabs(got - want) <= c->ulp * ulp_of((float)want),
                          "%s(%a) = %.9g, want %.9g", c->name, x, got, want);
    }
}
END_TEST

START_TEST(test_edges_are_those_of_libm)
{
    static const float x[] = {0, -0.f, 1, -1, 1e-40f, 700, -700, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
        const float got[] = {ls_exp(x[i]), ls_log(x[i]),     ls_tanh(x[i]),
                             ls_erf(x[i]), ls_sigmoid(x[i]), ls_softplus(x[i])};
        const double want[] = {exp(x[i]), log(x[i]),     tanh(x[i]),
                               erf(x[i]), sigmoid(x[i]), softplus(x[i])};
        for (int k = 0; k < 6; k++)
            ck_assert_msg((isnan(got[k]) && isnan(want[k])) || got[k] == (float)want[k]
                              || fabs(got[k] - want[k]) <= 1e-6 * fabs(want[k]),
                          "function %d of %g: %g, want %g", k, x[i], got[k], want[k]);
    }
}
END_TEST

START_TEST(test_powers_are_those_of_libm)
{
    static const float edge[] = {0, -0.f, 1,      -1,       0.5f,      2,  -2,
                                 3, -3,   1e-40f, INFINITY, -INFINITY, NAN};
    enum { EDGES = sizeof edge / sizeof *edge };
    for (uint32_t i = 0; i < STEPS; i++) {
        float x = ls_float32(i * 2654435761u), y = (float)((int)(i * 40503u % 4001) - 2000) * 0.01f;
        if (i < EDGES * EDGES) {
            x = edge[i / EDGES];
            y = edge[i % EDGES];
        } else if (i % 2 == 0) {
            x = fmodf(fabsf(x), 8);
        }
        if (x == -1 && isinf(y))
            continue;           /* C defines 1; no kernel needs it */
        volatile float exponent = y;
        float got = ls_pow(x, exponent), want = powf(x, y);
        ck_assert_msg((isnan(got) && isnan(want)) || got == want ||
                          fabs((double)got - want) <= ulp_of(want),
                      "pow(%a, %a) = %g, want %g", x, y, got, want);
    }
}
END_TEST

/* The finite float16 with these bits, positive; beyond the last, the next power of two. */
static float half(uint32_t bits)
{
    uint32_t exponent = bits >> 10, mantissa = bits & 1023;
    return exponent == 0 ? ldexpf((float)mantissa, -24)
                         : ldexpf((float)(1024 + mantissa), (int)exponent - 25);
}

START_TEST(test_reals_are_rounded_to_sixteen_bits_to_nearest_even)
{
    for (uint32_t h = 0; h < 0x7c00; h++) {
        float low = half(h), high = half(h + 1), middle = 0.5f * (low + high);
        float end = h + 1 == 0x7c00 ? INFINITY : high, even = h % 2 == 0 ? low : end;
        bool good = ls_round_half(low) == low && ls_round_half(-low) == -low
                    && ls_round_half(middle) == even && ls_round_half(nextafterf(middle, 0)) == low
                    && ls_round_half(nextafterf(middle, 1e9f)) == end;
        ck_assert_msg(good, "between %a and %a", low, high);
    }
    for (uint32_t b = 0; b < 0x7f7f; b++) {
        float low = ls_float32(b << 16), middle = ls_float32((b << 16) + 0x8000),
              high = ls_float32((b + 1) << 16);
        bool good = ls_round_brain(-low) == -low
                    && ls_round_brain(middle) == (b % 2 == 0 ? low : high)
                    && ls_round_brain(nextafterf(middle, 0)) == low;
        ck_assert_msg(good, "between %a and %a", low, high);
    }
    ck_assert(isnan(ls_round_half(NAN)) && isnan(ls_round_brain(NAN))
              && ls_round_half(-INFINITY) == -INFINITY && ls_round_brain(INFINITY) == INFINITY
              && signbit(ls_round_half(-0.f)));
}
END_TEST

START_TEST(test_powers_and_remainders_of_numbers_are_exact)
{
    ck_assert_int_eq(ls_pow(INT64_C(3), INT64_C(20)), INT64_C(3486784401));
    ck_assert_int_eq(ls_pow(INT64_C(-1), INT64_C(-3)), -1);
    ck_assert_int_eq(ls_pow(INT64_C(7), INT64_C(-1)), 0);
    ck_assert(ls_fmod(-4.5f, 2) == -0.5f && ls_floor_mod(-4.5f, 2) == 1.5f
              && ls_floor_mod(4.5f, -2) == -1.5f);
    ck_assert(signbit(ls_floor_mod(4, -2)) && isnan(ls_floor_mod(1, 0))
              && ls_floor_mod(-1, INFINITY) == INFINITY);
}
END_TEST

START_TEST(test_minima_and_maxima_hand_on_nan_and_keep_integers)
{
    ck_assert(isnan(ls_max(NAN, 1.f)) && isnan(ls_max(1.f, NAN)));
    ck_assert(isnan(ls_min(NAN, 1.f)) && isnan(ls_min(1.f, NAN)));
    ck_assert(isnan(ls_relu(NAN)) && ls_relu(-2) == 0 && ls_relu(3) == 3);
    ck_assert_int_eq(ls_max(INT64_C(9007199254740993), INT64_C(9007199254740992)),
                     INT64_C(9007199254740993));
    ck_assert_int_eq(ls_abs(INT64_C(-5)), 5);
    ck_assert(ls_round(2.5f) == 2 && ls_round(3.5f) == 4 && ls_round(-0.5f) == 0);
}
END_TEST

START_TEST(test_rows_are_summed_and_maximised_for_every_length)
{
    real x[700];
    for (int k = 0; k < 700; k++)
        x[k] = (real)((k * 37) % 101) - 50;
    for (int64_t n = 1; n <= 700; n++)
        for (int64_t lanes = 1; lanes <= 256; lanes *= 4) {
            double sum = 0, max = -1e9;
            for (int64_t k = 0; k < n; k++) {
                sum += x[k];
                max = fmax(max, x[k]);
            }
            ck_assert(ls_row_sum(x, n, lanes) == sum);
            ck_assert(ls_row_max(x, n, lanes) == (real)max);
        }
}
END_TEST

/* Of counts that should all be `each`. */
static double chi_square(int bins, const int *count, double each)
{
    double chi = 0;
    for (int b = 0; b < bins; b++)
        chi += pow(count[b] - each, 2) / each;
    return chi;
}

START_TEST(test_random_numbers_are_uniform_and_independent)
{
    enum { BINS = 64, N = 1 << 18 };
    for (int which = 0; which < 4; which++) {       /* inputs of the generator: index, step, id,
                                                     * seed */
        int bin[BINS] = {0};
        double sum = 0, product = 0, before = 0.5;
        for (int64_t i = 0; i < N; i++) {
            double u = which == 0 ? ls_uniform(1, 2, 3, i) : which == 1 ? ls_uniform(1, i, 3, 2)
                     : which == 2 ? ls_uniform(1, 2, i, 3) : ls_uniform((uint64_t)i, 2, 3, 1);
            ck_assert(u >= 0 && u < 1);
            bin[(int)(u * BINS)]++;
            sum += u;
            product += (u - 0.5) * (before - 0.5);
            before = u;
        }
        double chi = chi_square(BINS, bin, N / BINS);
        ck_assert_msg(fabs(sum / N - 0.5) < 0.003, "counting %d: mean %g", which, sum / N);
        ck_assert_msg(fabs(product / N) < 0.001, "counting %d: neighbours go together: %g", which,
                      product / N);
        ck_assert_msg(chi < 130, "counting %d: chi-square %g with %d bins", which, chi, BINS);
    }
    ck_assert(ls_uniform(1, 2, 3, 4) == ls_uniform(1, 2, 3, 4));
    ck_assert(ls_uniform(1, 2, 3, 4) != ls_uniform(1, 2, 3, 4 + (INT64_C(1) << 32)));
}
END_TEST

typedef real (*Normal)(uint64_t seed, int64_t step, int64_t id, int64_t index);

static real noise(uint64_t seed, int64_t step, int64_t id, int64_t index)
{
    const uint32_t key[LS_KEY_WORDS] = {(uint32_t)seed, (uint32_t)(seed >> 32), 3};
    return ls_noise(key, step, id, index);
}

static const Normal normal[] = {ls_normal, noise};
enum { NORMALS = sizeof normal / sizeof *normal };

/* Moments, and the share below each of a few places. */
START_TEST(test_normal_numbers_are_distributed_normally)
{
    enum { N = 1 << 18 };
    static const double place[] = {-4.5, -4, -3, -2, -1, -0.5, 0, 0.25, 1, 2, 3, 4, 4.5};
    int below[sizeof place / sizeof *place] = {0};
    double moment[5] = {0};
    for (int64_t i = 0; i < N; i++) {
        double z = normal[_i](1, 2, 3, i);
        ck_assert(isfinite(z) && z == (double)normal[_i](1, 2, 3, i));
        for (int k = 1; k < 5; k++)
            moment[k] += pow(z, k) / N;
        for (size_t k = 0; k < sizeof place / sizeof *place; k++)
            below[k] += z < place[k];
    }
    ck_assert_msg(fabs(moment[1]) < 0.01 && fabs(moment[2] - 1) < 0.02 && fabs(moment[3]) < 0.04
                  && fabs(moment[4] - 3) < 0.15, "moments %g %g %g %g", moment[1], moment[2],
                  moment[3], moment[4]);
    for (size_t k = 0; k < sizeof place / sizeof *place; k++) {
        double want = erfc(-place[k] / sqrt(2)) / 2, error = 5 * sqrt(want * (1 - want) / N) + 1e-9;
        ck_assert_msg(fabs((double)below[k] / N - want) < error, "below %g lie %g, not %g",
                      place[k], (double)below[k] / N, want);
    }
}
END_TEST

/* The chi-square statistic of `freedom` degrees is out of reach of chance: one in a million beyond
 * either end, by Wilson and Hilferty's cube root. Numbers that are too even fail, too. */
static void check_chi_square(const char *what, int counting, double chi, int freedom)
{
    const double spread = 2. / (9 * freedom), z = (cbrt(chi / freedom) - 1 + spread) / sqrt(spread);
    ck_assert_msg(fabs(z) < 4.75, "counting %d, %s: chi-square %g of %d degrees", counting, what,
                  chi, freedom);
}

/* A million numbers, counted by index, by step and by node: over intervals of equal probability,
 * and of each number and the one before it over squares of equal probability. */
START_TEST(test_a_million_normal_numbers_pass_the_chi_square_test)
{
    enum { BINS = 200, SIDE = 20, N = 1000000 };
    const Normal f = normal[_i];
    for (int which = 0; which < 3; which++) {
        int bin[BINS] = {0}, pair[SIDE * SIDE] = {0}, before = 0;
        for (int64_t i = 0; i < N; i++) {
            const double z = which == 0   ? f(7, 2, 3, i)
                             : which == 1 ? f(7, i, 3, 2)
                                          : f(7, 2, i, 3);
            const double u = erfc(-z * M_SQRT1_2) / 2;
            ck_assert(u > 0 && u < 1);
            bin[(int)(u * BINS)]++;
            pair[before * SIDE + (int)(u * SIDE)] += i % 2;     /* pairs do not overlap */
            before = (int)(u * SIDE);
        }
        check_chi_square("numbers", which, chi_square(BINS, bin, (double)N / BINS), BINS - 1);
        check_chi_square("pairs", which, chi_square(SIDE * SIDE, pair, N / 2. / (SIDE * SIDE)),
                         SIDE * SIDE - 1);
    }
}
END_TEST

/* No two of the numbers that a run may draw are the same: high and low halves of all arguments
 * matter. */
START_TEST(test_numbers_of_the_noise_differ_with_every_argument)
{
    static const int64_t wide[] = {0,
                                   1,
                                   2,
                                   0xffff,
                                   0x10000,
                                   INT64_C(1) << 31,
                                   INT64_C(1) << 32,
                                   (INT64_C(1) << 32) + 1,
                                   INT64_C(3) << 32,
                                   INT64_C(1) << 47};
    enum { W = sizeof wide / sizeof *wide };
    static double seen[W * W * 6];
    int n = 0;
    for (int u = 0; u < W; u++)
        for (int i = 0; i < W; i++)
            for (int64_t id = 0; id < 6; id++)
                seen[n++] = noise(9, wide[u], id, wide[i]);
    for (int a = 0; a < n; a++)
        for (int b = 0; b < a; b++)
            ck_assert_msg(seen[a] != seen[b], "%d and %d", a, b);
}
END_TEST

/* Numbers of the noise beyond 5.42 deviations, where those of ls_normal end: about 0.06 in a
 * million. */
START_TEST(test_the_noise_has_tails)
{
    enum { N = 1 << 25 };
    static float z[1 << 12];
    int beyond = 0, far = 0;
    for (int64_t i = 0; i < N; i += 1 << 12) {
        for (int64_t k = 0; k < 1 << 12; k++)
            z[k] = (float)noise(8, 1, 0, i + k);
        for (int64_t k = 0; k < 1 << 12; k++) {
            beyond += fabsf(z[k]) > 5;
            far += fabsf(z[k]) > 5.45f;
        }
    }
    const double want = N * erfc(5 * M_SQRT1_2);
    ck_assert_msg(fabs(beyond - want) < 5 * sqrt(want), "%d numbers beyond 5, not %g", beyond,
                  want);
    ck_assert_int_ge(far, 1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kernel_math");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_functions_are_accurate_to_a_few_units_in_the_last_place, 0,
                        sizeof cases / sizeof *cases);
    tcase_add_test(t, test_edges_are_those_of_libm);
    tcase_add_test(t, test_powers_are_those_of_libm);
    tcase_add_test(t, test_reals_are_rounded_to_sixteen_bits_to_nearest_even);
    tcase_add_test(t, test_powers_and_remainders_of_numbers_are_exact);
    tcase_add_test(t, test_minima_and_maxima_hand_on_nan_and_keep_integers);
    tcase_add_test(t, test_rows_are_summed_and_maximised_for_every_length);
    tcase_add_test(t, test_random_numbers_are_uniform_and_independent);
    tcase_add_loop_test(t, test_normal_numbers_are_distributed_normally, 0, NORMALS);
    tcase_add_loop_test(t, test_a_million_normal_numbers_pass_the_chi_square_test, 0, NORMALS);
    tcase_add_test(t, test_numbers_of_the_noise_differ_with_every_argument);
    tcase_add_test(t, test_the_noise_has_tails);
    return run_tests("kernel_math", t);
}
