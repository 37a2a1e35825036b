/* tests/compiler/test_machine_fit.c -- fits figures to times that were made from known figures. */
#include "compiler/cost/machine_fit.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 60 };

static LsArena *arena;
static LsMachine old, truth;

static void open_machines(void)
{
    arena = ls_arena_new();
    old = (LsMachine){.name = "old", .lanes = 16, .memory = 40, .cache = 2e6, .near = 2,
                      .peak = {[LS_PEAK_F32] = 400}};
    for (int c = 0; c < LS_NCOSTS; c++)
        old.cost[c] = (LsClassCost){0.3, 0.8, 0.6, 1500};
    truth = old;
}

/* Work of one class, from small to large, in changing proportions. */
static LsWork some_work(LsCostClass kind, int i)
{
    double size = pow(1.25, i);
    return (LsWork){.kind = kind, .flops = 100 * size * (1 + i * 7 % 5),
                    .read = 40 * size * (1 + i * 3 % 4), .written = 20 * size * (1 + i % 3)};
}

static LsSample sample(LsCostClass kind, int i)
{
    LsWork w = some_work(kind, i);
    return (LsSample){w, ls_work_ns(&truth, &w, 4)};
}

static uint32_t samples(LsSample *s, LsCostClass kind)
{
    for (int i = 0; i < MANY; i++)
        s[i] = sample(kind, i);
    return MANY;
}

/* The largest error of m over work of the class that is in no sample. */
static double worst(const LsMachine *m, LsCostClass kind)
{
    double most = 0;
    for (int i = 1; i < MANY; i += 4) {
        LsWork w = some_work(kind, i);
        w.flops *= 1.1, w.read *= 1.2;
        double want = ls_work_ns(&truth, &w, 4), got = ls_work_ns(m, &w, 4);
        most = fmax(most, fabs(got / want - 1));
    }
    return most;
}

START_TEST(the_figures_that_made_the_times_are_found)
{
    LsSample s[2 * MANY];
    open_machines();
    truth.cost[LS_COST_MAP] = (LsClassCost){0.3, 0.9, 0.4, 700};
    truth.cost[LS_COST_CONV] = (LsClassCost){0.9, 2, 0.8, 20000};
    truth.cache = 4e6;
    truth.near = 3;
    uint32_t n = samples(s, LS_COST_MAP);
    n += samples(s + n, LS_COST_CONV);
    LsMachine m = old;
    double missed = ls_machine_fit(arena, &m, s, n);
    ck_assert_double_lt(missed, 0.05);
    ck_assert_double_lt(worst(&m, LS_COST_MAP), 0.1);
    ck_assert_double_lt(worst(&m, LS_COST_CONV), 0.1);
    ls_arena_free(arena);
}
END_TEST

/* Also where products of 16 bits are faster than the machine's peak, which is that of floats. */
START_TEST(kernels_of_16_bits_get_their_own_figures)
{
    LsSample s[4 * MANY];
    open_machines();
    truth.cost[LS_COST_MATMUL] = (LsClassCost){0.9, 2, 0.8, 3000};
    truth.cost[LS_COST_MATMUL + LS_COST_BF16] = (LsClassCost){1.8, 2, 0.8, 4000};
    truth.cost[LS_COST_MAP + LS_COST_F16] = (LsClassCost){0.05, 0.9, 0.4, 700};
    uint32_t n = samples(s, LS_COST_MATMUL);
    n += samples(s + n, (LsCostClass)(LS_COST_MATMUL + LS_COST_BF16));
    n += samples(s + n, LS_COST_MAP);
    n += samples(s + n, (LsCostClass)(LS_COST_MAP + LS_COST_F16));
    LsMachine m = old;
    ck_assert_double_lt(ls_machine_fit(arena, &m, s, n), 0.05);
    ck_assert_double_lt(worst(&m, LS_COST_MATMUL), 0.1);
    ck_assert_double_lt(worst(&m, (LsCostClass)(LS_COST_MATMUL + LS_COST_BF16)), 0.1);
    ck_assert_double_lt(worst(&m, LS_COST_MAP), 0.1);
    ck_assert_double_lt(worst(&m, (LsCostClass)(LS_COST_MAP + LS_COST_F16)), 0.1);
    ck_assert_mem_eq(&m.cost[LS_COST_MATMUL + LS_COST_F16], &m.cost[LS_COST_MATMUL + LS_COST_BF16],
                     sizeof m.cost[0]);
    ck_assert_mem_eq(&m.cost[LS_COST_MAP + LS_COST_BF16], &m.cost[LS_COST_MAP], sizeof m.cost[0]);
    ls_arena_free(arena);
}
END_TEST

START_TEST(what_moving_hides_of_computing_is_found)
{
    static const double overlap[] = {0, 0.5, 1};
    LsSample s[MANY];
    open_machines();
    truth.cost[LS_COST_MATMUL] = (LsClassCost){0.3, 0.9, 0.4, 700};
    for (int k = 0; k < 3; k++) {
        LsMachine m = old;
        truth.overlap = overlap[k];
        uint32_t n = samples(s, LS_COST_MATMUL);
        ck_assert_double_lt(ls_machine_fit(arena, &m, s, n), 0.05);
        ck_assert_double_eq_tol(m.overlap, overlap[k], 0.26);
        ck_assert_double_lt(worst(&m, LS_COST_MATMUL), 0.1);
    }
    ls_arena_free(arena);
}
END_TEST

START_TEST(samples_say_how_long_ago_their_bytes_were_touched)
{
    static const double age[] = {1e5, 3e6, 4e7, 1e15};  /* for kernels of any size */
    LsSample s[MANY];
    LsTouch touch[2 * MANY];
    open_machines();
    truth.cost[LS_COST_MAP] = (LsClassCost){0.3, 0.9, 0.4, 700};
    truth.cache = 8e6;
    truth.near = 6;
    for (int i = 0; i < MANY; i++) {
        LsTouch *t = &touch[2 * i];
        s[i].work = some_work(LS_COST_MAP, i);
        t[0] = (LsTouch){s[i].work.read, age[i % 4], false};
        t[1] = (LsTouch){s[i].work.written, age[i / 4 % 4], true};
        s[i].work.touch = t;
        s[i].work.ntouch = 2;
        s[i].ns = ls_work_ns(&truth, &s[i].work, 4);
    }
    LsMachine m = old;
    ck_assert_double_lt(ls_machine_fit(arena, &m, s, MANY), 0.05);
    ck_assert_double_eq(m.cache, truth.cache);
    ck_assert_double_eq(m.near, truth.near);
    ls_arena_free(arena);
}
END_TEST

/* A file cannot state that operations cost nothing: they get the speed of the fastest product, and
 * the bytes take less time accordingly. */
START_TEST(kernels_whose_bytes_are_all_that_counts_are_not_dearer_for_it)
{
    LsSample s[2 * MANY];
    open_machines();
    truth.cost[LS_COST_MATMUL] = (LsClassCost){0.9, 0.8, 0.6, 3000};
    truth.cost[LS_COST_MATMUL_OUTER] = (LsClassCost){0, 0.5, 0.4, 1000};
    uint32_t n = samples(s, LS_COST_MATMUL_OUTER);
    n += samples(s + n, LS_COST_MATMUL);
    LsMachine m = old;
    ls_machine_fit(arena, &m, s, n);
    ck_assert_double_gt(m.cost[LS_COST_MATMUL_OUTER].compute, 0);
    ck_assert_double_le(m.cost[LS_COST_MATMUL_OUTER].compute, 1);
    double measured = 0, modelled = 0;
    for (int i = 0; i < MANY; i++) {
        measured += s[i].ns;
        modelled += ls_work_ns(&m, &s[i].work, 4);
    }
    ck_assert_double_eq_tol(modelled / measured, 1, 0.05);
    ls_arena_free(arena);
}
END_TEST

START_TEST(a_disturbed_measurement_bends_no_line)
{
    LsSample s[MANY];
    open_machines();
    truth.cost[LS_COST_MAP] = (LsClassCost){0.3, 0.9, 0.4, 700};
    uint32_t n = samples(s, LS_COST_MAP);
    for (int i = 0; i < MANY; i += 9)
        s[i].ns *= 10;
    LsMachine m = old;
    ls_machine_fit(arena, &m, s, n);
    ck_assert_double_lt(worst(&m, LS_COST_MAP), 0.15);
    ls_arena_free(arena);
}
END_TEST

START_TEST(alike_samples_scale_the_old_figures)
{
    LsSample s[3];
    open_machines();
    for (int i = 0; i < 3; i++) {
        s[i] = sample(LS_COST_POOL, 40);
        s[i].ns *= 2;
    }
    LsMachine m = old;
    ls_machine_fit(arena, &m, s, 3);
    LsWork small = some_work(LS_COST_POOL, 20);
    ck_assert_double_eq_tol(ls_work_ns(&m, &small, 4) / ls_work_ns(&old, &small, 4), 2, 0.5);
    LsWork grad = some_work(LS_COST_POOL_GRAD, 40);     /* of which there is no sample */
    ck_assert_double_eq_tol(ls_work_ns(&m, &grad, 4) / ls_work_ns(&old, &grad, 4), 2, 0.5);
    ls_arena_free(arena);
}
END_TEST

START_TEST(without_samples_nothing_changes)
{
    open_machines();
    LsMachine m = old;
    ck_assert_double_eq(ls_machine_fit(arena, &m, NULL, 0), 0);
    for (int c = 0; c < LS_NCOSTS; c++)
        ck_assert_double_eq(m.cost[c].launch, old.cost[c].launch);
    ck_assert_double_eq(m.overlap, old.overlap);
    ls_arena_free(arena);
}
END_TEST

START_TEST(what_was_fitted_is_written_and_read)
{
    LsSample s[MANY];
    char *text = NULL, err[256];
    size_t size;
    open_machines();
    LsMachine m = old, again;
    ls_machine_fit(arena, &m, s, samples(s, LS_COST_REDUCE));
    FILE *to = open_memstream(&text, &size);
    ls_machine_write(to, &m, "fitted");
    fclose(to);
    ck_assert_msg(ls_machine_parse(&again, text, "FILE", err, sizeof err), "%s", err);
    for (int i = 0; i < MANY; i++)
        ck_assert_double_eq_tol(ls_work_ns(&again, &s[i].work, 4) / ls_work_ns(&m, &s[i].work, 4),
                                1, 1e-4);
    free(text);
    ls_arena_free(arena);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("machine_fit");
    const TTest *const tests[] = {
        the_figures_that_made_the_times_are_found, kernels_of_16_bits_get_their_own_figures,
        samples_say_how_long_ago_their_bytes_were_touched, a_disturbed_measurement_bends_no_line,
        kernels_whose_bytes_are_all_that_counts_are_not_dearer_for_it,
        what_moving_hides_of_computing_is_found, alike_samples_scale_the_old_figures,
        without_samples_nothing_changes, what_was_fitted_is_written_and_read};
    add_tests(tc, sizeof tests / sizeof *tests, tests);
    return run_tests("machine_fit", tc);
}
