/* tests/scheduler/test_partition_dp.c -- the DP over lower sets against all strategies. */
#include <check.h>
#include <math.h>

#include "scheduler/lower_sets/least_formula_budget.h"
#include "scheduler/lower_sets/partition_dp.h"
#include "tests/support/dag_tools.h"
#include "tests/support/every_strategy.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

static void compare(const LsForward *f, const LsFamily *fam, bool price_last, double part)
{
    Brute b = {.arena = a, .f = f, .fam = fam, .price_last = price_last, .budget = INT64_MAX,
               .least = INFINITY, .greatest = -INFINITY, .tightest = INT64_MAX};
    brute(&b, 0, 0);
    b.budget = b.tightest + (int64_t)(part * (double)b.tightest);
    b.least = INFINITY;
    b.greatest = -INFINITY;
    brute(&b, 0, 0);
    LsDpOptions o = {.budget = b.budget, .price_last = price_last, .cells = 1 << 16,
                     .most_points = 100000};
    LsStrategies tc = ls_partition(a, f, fam, &o);
    o.greatest = true;
    LsStrategies mc = ls_partition(a, f, fam, &o);
    ck_assert_uint_gt(tc.n, 0);
    ck_assert_uint_gt(mc.n, 0);
    ck_assert_double_eq_tol(tc.item[0].time, b.least, 1e-9);
    ck_assert_double_eq_tol(mc.item[0].time, b.greatest, 1e-9);
    for (uint32_t k = 0; k < tc.n; k++) {
        LsStrategy s = tc.item[k];
        ls_strategy_price(a, f, price_last, &s);
        ck_assert_double_eq_tol(s.time, tc.item[k].time, 1e-9);
        ck_assert_int_le(s.peak, b.budget);
    }
    o.budget = b.tightest - 1;                      /* nothing fits, and the DP reports it */
    ck_assert_uint_eq(ls_partition(a, f, fam, &o).n, 0);
}

START_TEST(the_dp_finds_the_best_of_all_strategies)
{
    for (uint64_t seed = 0; seed < 24; seed++) {
        LsForward *f = ls_forward_new(a, ls_prob_new(a, dag_make(a, 3 + seed % 4, seed), true));
        const LsFamily *all = ls_family_all(f, 100000);
        compare(f, all, seed % 2, 0.05 * (double)(seed % 8));
    }
}
END_TEST

/* The memory formula is checked for listed steps and for steps found during the search. A term
 * missing in one of them would accept strategies above the budget. */
START_TEST(no_budget_lets_through_a_strategy_that_needs_more)
{
    enum { BUDGETS = 16 };
    for (uint64_t seed = 200; seed < 200 + (uint64_t)tests_part(30, 12); seed++) {
        LsForward *f = ls_forward_new(a, ls_prob_new(a, dag_make(a, 4 + seed % 4, seed), true));
        LsFamily fam = *ls_family_all(f, 100000);
        Brute b = {.arena = a, .f = f, .fam = &fam, .budget = INT64_MAX, .tightest = INT64_MAX};
        brute(&b, 0, 0);
        int64_t least = ls_least_budget(a, f, &fam, 4 * b.tightest);
        ck_assert_int_ge(least, b.tightest);
        ck_assert_int_le(least, b.tightest + b.tightest / 900 + 1);
        for (int k = 0; k < 2 * BUDGETS; k++) {
            LsDpOptions o = {.budget = b.tightest + b.tightest * (k / 2) / BUDGETS,
                             .cells = 1 << 16, .most_points = 100000, .greatest = k % 2};
            LsFamily unlisted = fam;
            unlisted.step = NULL;
            b.budget = o.budget;
            b.least = INFINITY;
            b.greatest = -INFINITY;
            brute(&b, 0, 0);
            LsStrategies s[2] = {ls_partition(a, f, &fam, &o), ls_partition(a, f, &unlisted, &o)};
            for (int j = 0; j < 2; j++) {
                ck_assert_uint_gt(s[j].n, 0);
                ck_assert_double_eq_tol(s[j].item[0].time, o.greatest ? b.greatest : b.least, 1e-9);
                for (uint32_t i = 0; i < s[j].n; i++) {
                    ls_strategy_price(a, f, false, &s[j].item[i]);
                    ck_assert_int_le(s[j].item[i].peak, o.budget);
                }
            }
        }
    }
}
END_TEST

START_TEST(the_approximate_dp_is_the_best_over_its_own_family)
{
    for (uint64_t seed = 100; seed < 120; seed++) {
        LsForward *f = ls_forward_new(a, ls_prob_new(a, dag_make(a, 9, seed), true));
        compare(f, ls_family_pruned(f), seed % 2, 0.05 * (double)(seed % 8));
    }
}
END_TEST

START_TEST(a_coarse_grid_and_a_thin_front_lose_little)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        LsForward *f = ls_forward_new(a, ls_prob_new(a, dag_make(a, 14, seed), true));
        const LsFamily *fam = ls_family_pruned(f);
        LsDpOptions o = {.budget = 30000, .greatest = seed % 2, .cells = 1 << 16,
                         .most_points = 100000};
        LsStrategies fine = ls_partition(a, f, fam, &o);
        o.cells = 16;
        o.most_points = 8;
        LsStrategies rough = ls_partition(a, f, fam, &o);
        ck_assert_uint_gt(rough.n, 0);
        ck_assert_uint_le(rough.n, 8);
        double lost = rough.item[0].time - fine.item[0].time;
        ck_assert_double_ge(o.greatest ? -lost : lost, 0);
        ck_assert_double_le(fabs(lost), fam->time[fam->n - 1] / 4);
        for (uint32_t k = 0; k < rough.n; k++) {
            LsStrategy s = rough.item[k];
            ls_strategy_price(a, f, false, &s);
            ck_assert_double_eq_tol(s.time, rough.item[k].time, 1e-9);
            ck_assert_int_le(s.peak, o.budget);
        }
    }
}
END_TEST

/* Least overhead of the paper's own formulas (last block priced) that the reference implementation
 * finds at these budgets of formula peak. */
START_TEST(shared_graphs_give_the_reference_figures)
{
    static const struct { const char *file; int64_t budget; double exact, approx; } want[] = {
#include "tests/scheduler/partition_reference.def"
    };
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        LsDag *g = dag_shared(a, want[k].file);
        if (g == NULL)
            continue;
        LsForward *f = ls_forward_new(a, ls_prob_new(a, g, true));
        LsDpOptions o = {.budget = want[k].budget, .price_last = true, .cells = 1 << 16,
                         .most_points = 1 << 20};
        LsStrategies s = ls_partition(a, f, ls_family_all(f, 40000), &o);
        ck_assert_double_eq_tol(s.n ? s.item[0].time : -1, want[k].exact, 1e-6);
        s = ls_partition(a, f, ls_family_pruned(f), &o);
        ck_assert_double_eq_tol(s.n ? s.item[0].time : -1, want[k].approx, 1e-6);
    }
}
END_TEST

START_TEST(chen_cuts_a_chain_anywhere_and_nowhere_across_a_long_skip)
{
    uint32_t in[2] = {0, 1}, out[4] = {0, 1, 2, 3};
    for (int skip = 0; skip < 2; skip++) {
        LsDagTensor t[4] = {{"a", 8, false, false}, {"b", 8, false, false}, {"c", 8, false, false},
                            {"d", 8, false, true}};
        uint32_t last[2] = {2, 0};
        LsDagNode n[4] = {
            {.name = "a", .op = "", .cost = 1, .out = out, .nout = 1, .of = -1},
            {.name = "b", .op = "", .cost = 1, .in = in, .nin = 1, .out = out + 1, .nout = 1,
             .of = -1},
            {.name = "c", .op = "", .cost = 1, .in = in + 1, .nin = 1, .out = out + 2, .nout = 1,
             .of = -1},
            {.name = "d", .op = "", .cost = 1, .in = last, .nin = skip ? 2 : 1, .out = out + 3,
             .nout = 1, .of = -1}};
        LsDag g = {
            .name = "chain", .alignment = 1, .tensor = t, .ntensor = 4, .node = n, .nnode = 4};
        LsStrategies s = ls_chen(a, ls_forward_new(a, ls_prob_new(a, &g, true)));
        /* the smallest parts first: every cut is taken */
        ck_assert_uint_eq(s.item[0].ncut, skip ? 2 : 4);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("partition");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, the_dp_finds_the_best_of_all_strategies);
    tcase_add_test(tc, no_budget_lets_through_a_strategy_that_needs_more);
    tcase_add_test(tc, the_approximate_dp_is_the_best_over_its_own_family);
    tcase_add_test(tc, a_coarse_grid_and_a_thin_front_lose_little);
    tcase_add_test(tc, shared_graphs_give_the_reference_figures);
    tcase_add_test(tc, chen_cuts_a_chain_anywhere_and_nowhere_across_a_long_skip);
    return run_tests("partition", tc);
}
