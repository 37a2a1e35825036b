/* tests/runtime/test_privacy.c -- the accountant of private training, beside what dp_accounting and
 * mpmath compute (tests/runtime/privacy_table.py), and at its edges. */
#include "tests/support/suite.h"
#include "runtime/privacy/privacy_ledger.h"
#include "runtime/privacy/renyi.h"
#include "runtime/update/private_updates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static char why[LS_PRIVACY_WHY];

/* One run of equal updates. */
static LsPrivacyBound bound_of(double rate, double noise, int64_t updates, double delta)
{
    LsPrivacyLedger l = {0};
    ck_assert_msg(ls_privacy_add(&l, rate, noise, updates, why), "%s", why);
    LsPrivacyBound b = ls_privacy_epsilon(&l, delta);
    ls_privacy_free(&l);
    return b;
}

/* Within 0.001 of RdpAccountant, never above it, never below the nearly exact PLDAccountant. */
static int check_bound(const char *line)
{
    double rate, noise, delta, epsilon, order, least;
    long updates;
    char word[8];
    if (sscanf(line, "bound %lf %lf %ld %lf %lf %lf %lf %7s", &rate, &noise, &updates, &delta,
               &epsilon, &order, &least, word)
        != 8)
        return 0;
    const bool near = strcmp(word, "near") == 0;
    LsPrivacyBound b = bound_of(rate, noise, updates, delta);
    ck_assert_msg(b.epsilon <= epsilon * (1 + 1e-8) && b.epsilon >= least, "%s: %.9g", line,
                  b.epsilon);
    ck_assert_msg(near == (b.epsilon > epsilon - 1e-3), "%s: %.9g", line, b.epsilon);
    ck_assert_msg(!near || fabs(b.order - order) < 1e-9, "%s: order %g", line, b.order);
    return near;
}

static int check_renyi(const char *line)
{
    double rate, noise, order, want;
    if (sscanf(line, "renyi %lf %lf %lf %lf", &rate, &noise, &order, &want) != 4)
        return 0;
    const double got = ls_renyi_update(rate, noise, order);
    ck_assert_msg(fabs(got / want - 1) < 1e-12, "%s: %.15g", line, got);
    return 1;
}

START_TEST(epsilons_and_divergences_are_those_of_the_table)
{
    char line[200];
    int bounds = 0, divergences = 0;
    FILE *f = fopen(LS_SOURCE "/tests/runtime/privacy_table.txt", "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        bounds += check_bound(line);
        divergences += check_renyi(line);
    }
    fclose(f);
    ck_assert_int_ge(bounds, 50);
    ck_assert_int_ge(divergences, 50);
}
END_TEST

/* log of the binomial sum of a whole order, in long doubles, over order - 1 */
static double whole(double rate, double noise, int order)
{
    const long double q = rate, s = noise;
    long double sum = 0, coefficient = 1;
    for (int k = 0; k <= order; k++) {
        sum += coefficient * powl(q, k) * powl(1 - q, order - k) * expl((k * k - k) / (2 * s * s));
        coefficient *= (long double)(order - k) / (k + 1);
    }
    return (double)(logl(sum) / (order - 1));
}

START_TEST(whole_orders_are_the_binomial_sum_and_others_lie_between)
{
    static const double rate[] = {0.001, 0.02, 0.22, 0.5, 0.99}, noise[] = {0.1, 0.5, 1, 2.5, 20};
    static const int order[] = {2, 3, 10, 11, 40, 63, 1024};
    for (int q = 0; q < 5; q++)
        for (int s = 0; s < 5; s++)
            for (int a = 0; a < 7; a++) {
                if (order[a] / noise[s] > 140)
                    continue;           /* a long double cannot hold the sum */
                const double want = whole(rate[q], noise[s], order[a]), h = 1e-4;
                const double below = ls_renyi_update(rate[q], noise[s], order[a] - h);
                const double at = ls_renyi_update(rate[q], noise[s], order[a]);
                const double above = ls_renyi_update(rate[q], noise[s], order[a] + h);
                ck_assert_msg(fabs(at / want - 1) < 1e-9,
                              "rate %g noise %g order %d: %.15g, not %.15g", rate[q], noise[s],
                              order[a], at, want);
                ck_assert_msg(below < at && at < above
                                  && fabs((below + above) / 2 - at) < 1e-6 * at,
                              "rate %g noise %g order %d: %.15g %.15g %.15g", rate[q], noise[s],
                              order[a], below, at, above);
            }
}
END_TEST

START_TEST(full_batches_are_the_gaussian_mechanism)
{
    ck_assert_double_eq_tol(ls_renyi_update(1, 2, 3.5), 3.5 / 8, 1e-15);
    ck_assert_double_eq_tol(ls_renyi_update(1 - 1e-12, 2, 3.5), 3.5 / 8, 1e-10);
    /* By hand, at the best order. */
    LsPrivacyBound b = bound_of(1, 1, 1, 1e-5);
    ck_assert_double_eq_tol(b.order, 5.4, 1e-12);
    ck_assert_double_eq_tol(b.epsilon, 2.7 + log1p(-1 / 5.4) - log(1e-5 * 5.4) / 4.4, 1e-12);
}
END_TEST

START_TEST(nothing_published_costs_nothing_and_no_noise_costs_everything)
{
    LsPrivacyLedger none = {0};
    ck_assert(ls_privacy_epsilon(&none, 1e-5).epsilon == 0);
    ck_assert(bound_of(0, 1, 1000, 1e-5).epsilon == 0);
    ck_assert(bound_of(0, 0, 1000, 1e-5).epsilon == 0);
    ck_assert(bound_of(0.01, 1, 0, 1e-5).epsilon == 0);
    ck_assert(bound_of(0.01, 0, 0, 1e-5).epsilon == 0);
    LsPrivacyBound b = bound_of(1e-9, 0, 1, 1e-5);
    ck_assert(isinf(b.epsilon) && b.order == 0);
    ck_assert(ls_privacy_add(&none, 0.5, 0, 0, why) && ls_privacy_add(&none, 0.01, 1, 100, why));
    ck_assert(ls_privacy_epsilon(&none, 1e-5).epsilon == bound_of(0.01, 1, 100, 1e-5).epsilon);
    ls_privacy_free(&none);
    ck_assert(isinf(bound_of(0.5, LS_LEAST_NOISE * 0.99, 1, 0.5).epsilon));
    ck_assert(isfinite(bound_of(1e-9, LS_LEAST_NOISE, 1, 1e-5).epsilon));
}
END_TEST

START_TEST(extreme_numbers_stay_finite_and_in_order)
{
    double before = 0;
    for (double delta = 0.1; delta > 1e-300; delta *= 1e-7) {
        LsPrivacyBound b = bound_of(0.01, 1, 1000, delta);
        ck_assert_msg(isfinite(b.epsilon) && b.epsilon > before, "delta %g: %g", delta, b.epsilon);
        before = b.epsilon;
    }
    before = INFINITY;
    for (double noise = 0.011; noise < 1e9; noise *= 3) {
        LsPrivacyBound b = bound_of(0.3, noise, 100, 1e-5);
        ck_assert_msg(b.epsilon < before || b.epsilon == 0, "noise %g: %g after %g", noise,
                      b.epsilon, before);
        before = b.epsilon;
    }
    ck_assert_msg(before == 0, "much noise: %g", before);
    ck_assert(bound_of(0.5, 1e300, INT64_MAX, 1e-5).epsilon == 0);
    ck_assert(bound_of(1, 1e300, INT64_MAX, 1e-5).epsilon == 0);
    before = 0;
    for (double rate = 1e-300; rate < 1; rate *= 1e10) {
        double r = ls_renyi_update(rate, 1, 2);         /* log(1 + rate^2 (e - 1)) */
        ck_assert_msg(r >= before && fabs(r - log1p(rate * rate * (M_E - 1))) <= 1e-12 * r,
                      "rate %g: %g", rate, r);
        before = r;
    }
    ck_assert(isfinite(bound_of(1e-8, 0.02, INT64_MAX, 1e-5).epsilon));
    ck_assert(bound_of(1, 0.5, 1000, 1e-5).order == 1.1);       /* the least order there is */
    /* Divergences grow with the order, and stay below those without sampling. */
    for (double noise = LS_LEAST_NOISE; noise < 1; noise *= 2.7) {
        before = 0;
        for (int k = 11; k < 110; k++) {
            double r = ls_renyi_update(0.3, noise, k / 10.);
            ck_assert_msg(r > before && r < k / 20. / (noise * noise), "noise %g order %g: %g",
                          noise, k / 10., r);
            before = r;
        }
    }
}
END_TEST

START_TEST(runs_compose_in_any_order_and_equal_runs_are_one)
{
    LsPrivacyLedger ab = {0}, ba = {0};
    const double delta = 1e-5;
    ck_assert(ls_privacy_add(&ab, 0.01, 1.1, 400, why) && ls_privacy_add(&ab, 0.02, 2, 70, why));
    ck_assert(ls_privacy_add(&ab, 0.01, 1.1, 600, why));
    ck_assert_int_eq(ab.n, 2);
    ck_assert_int_eq(ab.run[0].updates, 1000);
    ck_assert(ls_privacy_add(&ba, 0.02, 2, 70, why) && ls_privacy_add(&ba, 0.01, 1.1, 1000, why));
    LsPrivacyBound x = ls_privacy_epsilon(&ab, delta), y = ls_privacy_epsilon(&ba, delta);
    ck_assert_double_eq_tol(x.epsilon, y.epsilon, 1e-14);
    ck_assert(x.epsilon > bound_of(0.01, 1.1, 1000, delta).epsilon);
    ck_assert(x.epsilon
              < bound_of(0.01, 1.1, 1000, delta).epsilon + bound_of(0.02, 2, 70, delta).epsilon);
    /* Divergences add up: at the order that was taken, the sum gives this epsilon. */
    const double sum =
        1000 * ls_renyi_update(0.01, 1.1, x.order) + 70 * ls_renyi_update(0.02, 2, x.order);
    ck_assert_double_eq_tol(
        x.epsilon, sum + log1p(-1 / x.order) - log(delta * x.order) / (x.order - 1), 1e-12);
    ck_assert(ls_privacy_add(&ab, 0.03, 2, 5, why) && ls_privacy_add(&ab, 0.02, 3, 5, why));
    ck_assert_int_eq(ab.n, 4);
    ck_assert(ls_privacy_add(&ab, 0.5, 0, 1, why));
    ck_assert(isinf(ls_privacy_epsilon(&ab, delta).epsilon));
    ls_privacy_free(&ab);
    ls_privacy_free(&ba);
}
END_TEST

START_TEST(the_noise_for_an_epsilon_is_the_least_that_keeps_it)
{
    static const struct { double rate, epsilon; int64_t updates;
    } want[] = {{0.01, 2, 10000}, {0.01, 8, 10000},   {0.5, 1, 100},
                {1, 3, 1},        {1e-4, 0.05, 1000}, {0.001, 3000, 2}};
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        double s = -1;
        ck_assert_msg(
            ls_privacy_noise(want[k].rate, want[k].updates, 1e-5, want[k].epsilon, &s, why), "%s",
            why);
        ck_assert_msg(bound_of(want[k].rate, s, want[k].updates, 1e-5).epsilon <= want[k].epsilon
                          && (s == LS_LEAST_NOISE
                              || bound_of(want[k].rate, s - 1e-4, want[k].updates, 1e-5).epsilon
                                     > want[k].epsilon),
                      "row %zu: noise %g", k, s);
        ck_assert_msg(fabs(s * 1e4 - round(s * 1e4)) < 1e-6, "row %zu: noise %.17g", k, s);
    }
    double s = -1;
    ck_assert(ls_privacy_noise(0.01, 0, 1e-5, 1, &s, why) && s == 0);
    ck_assert(ls_privacy_noise(0, 100, 1e-5, 1, &s, why) && s == 0);
    ck_assert(ls_privacy_noise(1, 1, 1e-5, 1e6, &s, why) && s == LS_LEAST_NOISE);
}
END_TEST

static void refused(bool ok, const char *words)
{
    ck_assert_msg(!ok && strstr(why, words) != NULL, "'%s' has no '%s'", why, words);
    *why = '\0';
}

START_TEST(numbers_out_of_range_are_refused_and_leave_the_ledger_as_it_was)
{
    LsPrivacyLedger l = {0};
    double s = -1;
    *why = '\0';
    refused(ls_privacy_add(&l, 1.5, 1, 1, why), "the sampling rate is 1.5");
    refused(ls_privacy_add(&l, -1e-9, 1, 1, why), "the sampling rate is -1e-09");
    refused(ls_privacy_add(&l, NAN, 1, 1, why), "the sampling rate is nan");
    refused(ls_privacy_add(&l, 0.5, -1, 1, why), "the noise multiplier is -1");
    refused(ls_privacy_add(&l, 0.5, NAN, 1, why), "the noise multiplier is nan");
    refused(ls_privacy_add(&l, 0.5, INFINITY, 1, why), "the noise multiplier is inf");
    refused(ls_privacy_add(&l, 0.5, 1, -1, why), "the number of updates is -1");
    ck_assert_int_eq(l.n, 0);
    ck_assert(ls_privacy_add(&l, 0.5, 1, INT64_MAX, why));
    refused(ls_privacy_add(&l, 0.5, 1, 1, why), "too many updates");
    ck_assert(l.n == 1 && l.run[0].updates == INT64_MAX);
    ls_privacy_free(&l);
    ck_assert(l.n == 0 && l.run == NULL);
    refused(ls_privacy_noise(2, 1, 1e-5, 1, &s, why), "the sampling rate is 2");
    refused(ls_privacy_noise(0.5, -3, 1e-5, 1, &s, why), "the number of updates is -3");
    refused(ls_privacy_noise(1, INT64_MAX, 1e-9, 1e-3, &s, why),
            "no noise multiplier up to 1e+06 keeps epsilon within 0.001");
    ck_assert(s == -1);
}
END_TEST

/* Losses that are not finite are borne, but for so many updates in a row. */
START_TEST(spoilt_updates_count_while_they_are_in_a_row)
{
    const LsProgram p = {.real_bytes = 4};
    const LsMemory m = {.p = &p};
    LsPrivateRun r = {.told = true};
    LsError e = {0};
    for (int64_t k = 1; k <= 4 * LS_MAX_SKIPPED; k++)
        ck_assert_msg(ls_private_check(&r, &m, k, k % LS_MAX_SKIPPED != 0, &e), "%s", e.text);
    for (int64_t k = 1; k < LS_MAX_SKIPPED; k++)
        ck_assert_msg(ls_private_check(&r, &m, k, true, &e), "%s", e.text);
    ck_assert(!ls_private_check(&r, &m, 9, true, &e));
    ck_assert_int_eq(e.code, LS_EXIT_DIVERGED);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("privacy");
    add_tests(t, 9,
              (const TTest *[]){epsilons_and_divergences_are_those_of_the_table,
                                spoilt_updates_count_while_they_are_in_a_row,
                                whole_orders_are_the_binomial_sum_and_others_lie_between,
                                full_batches_are_the_gaussian_mechanism,
                                nothing_published_costs_nothing_and_no_noise_costs_everything,
                                extreme_numbers_stay_finite_and_in_order,
                                runs_compose_in_any_order_and_equal_runs_are_one,
                                the_noise_for_an_epsilon_is_the_least_that_keeps_it,
                                numbers_out_of_range_are_refused_and_leave_the_ledger_as_it_was});
    return run_tests("privacy", t);
}
