/* tests/scheduler/test_branch_and_bound.c -- the exact DP: small cases by hand, random graphs
 * against all strategies, and the published graphs against a plain table of the paper's
 * recurrence. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "scheduler/lower_sets/branch_and_bound.h"
#include "tests/support/dag_tools.h"
#include "tests/support/every_strategy.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

static void check_best(const LsExact *x, const LsDpOptions *o, double want)
{
    LsStrategy s;
    ck_assert_int_eq(ls_exact_solve(a, x, o, &s), LS_EXACT_FOUND);
    ck_assert_double_eq_tol(s.time, want, 1e-6);
    ck_assert_int_le(s.peak, o->budget);
}

/* Costs that are not whole numbers, so that no table by cost is possible. */
static LsForward *random_forward(uint32_t nf, uint64_t seed)
{
    LsDag *g = dag_make(a, nf, seed);
    for (uint32_t i = 0; i < g->nnode; i++)
        g->node[i].cost += 0.37 * sqrt(i + 1.0);
    return ls_forward_new(a, ls_prob_new(a, g, true));
}

START_TEST(no_strategy_is_better_on_small_random_graphs)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        LsForward *f = random_forward(3 + seed % 4, seed);
        const LsFamily *fam = ls_family_all(f, 100000);
        Brute b = {.arena = a, .f = f, .fam = fam, .price_last = seed % 3 > 0, .budget = 0,
                   .tightest = INT64_MAX};
        brute(&b, 0, 0);
        for (int part = 0; part < 3; part++) {
            b.budget = b.tightest + part * part * b.tightest / 8;
            b.least = INFINITY;
            b.greatest = -INFINITY;
            brute(&b, 0, 0);
            for (uint32_t projections = 2; projections < 2000; projections *= 6) {
                LsExact *x = ls_exact_new(a, f, fam, projections);
                LsDpOptions o = {.budget = b.budget, .price_last = b.price_last};
                check_best(x, &o, b.least);
                o.greatest = true;
                check_best(x, &o, b.greatest);
                LsStrategy s;
                o.budget = b.tightest - 1;          /* nothing fits, and the DP reports it */
                ck_assert_int_eq(ls_exact_solve(a, x, &o, &s), LS_EXACT_NONE);
            }
        }
    }
}
END_TEST

START_TEST(the_fronts_of_the_dp_hold_nothing_better_on_larger_graphs)
{
    for (uint64_t seed = 0; seed < (uint64_t)tests_part(24, 9); seed++) {
        LsForward *f = random_forward(10 + seed % 5, seed + 500);
        bool pruned = seed % 4 == 0;
        const LsFamily *fam = pruned ? ls_family_pruned(f) : ls_family_all(f, 100000);
        LsExact *x = ls_exact_new(a, f, fam, seed % 2 ? 12 : 0);
        for (int k = 0; k < 6; k++) {
            LsDpOptions o = {.budget = 6000 + 2500 * (k / 2), .greatest = k % 2,
                             .price_last = seed % 3 > 0, .cells = 1 << 20,
                             .most_points = 1 << 20};
            LsStrategies want = ls_partition(a, f, fam, &o);
            LsStrategy s;
            if (want.n > 0)
                check_best(x, &o, want.item[0].time);
            else
                ck_assert_int_eq(ls_exact_solve(a, x, &o, &s), LS_EXACT_NONE);
        }
    }
}
END_TEST

/* a -> b -> c -> d, each 8 bytes, cost 1, 2, 4, 8. A block of k vertices takes 16 k bytes, the kept
 * values before it, and 8 for the vertex behind it. With everything but d kept, the last two blocks
 * take 40; {a, b}, {c, d} takes 32 + 8 twice, and b alone is kept. */
START_TEST(a_chain_is_cut_where_the_budget_wants_it)
{
    uint32_t id[4] = {0, 1, 2, 3};
    LsDagTensor t[4] = {{"a", 8, false, false}, {"b", 8, false, false}, {"c", 8, false, false},
                        {"d", 8, false, true}};
    LsDagNode n[4];
    for (uint32_t v = 0; v < 4; v++)
        n[v] = (LsDagNode){.name = t[v].name, .op = "", .cost = 1 << v, .out = id + v, .nout = 1,
                           .in = id + (v ? v - 1 : 0), .nin = v > 0, .of = -1};
    LsDag g = {.name = "chain", .alignment = 1, .tensor = t, .ntensor = 4, .node = n, .nnode = 4};
    LsForward *f = ls_forward_new(a, ls_prob_new(a, &g, true));
    LsExact *x = ls_exact_new(a, f, ls_family_all(f, 100), 0);
    static const struct { int64_t budget; bool greatest; double time; } want[] = {
        {40, false, 8},                             /* a, b, c kept */
        {39, false, -1},                            /* {a, b} takes 32 and c beside it */
        {40, true, 13},                             /* b kept */
        {64, true, 15},                             /* one block */
    };
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        LsDpOptions o = {.budget = want[k].budget, .greatest = want[k].greatest,
                         .price_last = true};
        LsStrategy s;
        if (want[k].time < 0)
            ck_assert_int_eq(ls_exact_solve(a, x, &o, &s), LS_EXACT_NONE);
        else
            check_best(x, &o, want[k].time);
    }
}
END_TEST

START_TEST(a_graph_that_costs_nothing_has_strategies_too)
{
    LsDag *g = dag_make(a, 6, 4);
    for (uint32_t i = 0; i < g->nnode; i++)
        g->node[i].cost = 0;
    LsForward *f = ls_forward_new(a, ls_prob_new(a, g, true));
    LsExact *x = ls_exact_new(a, f, ls_family_all(f, 1000), 0);
    for (int greatest = 0; greatest < 2; greatest++)
        check_best(x, &(LsDpOptions){.budget = 100000, .greatest = greatest}, 0);
}
END_TEST

/* The sum of rounded-up times may be far larger than the sum of the times. */
START_TEST(coarsely_rounded_times_lose_no_strategy)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        LsForward *f = random_forward(8, seed);
        const LsFamily *fam = ls_family_all(f, 1000);
        LsExact *x = ls_exact_new(a, f, fam, 0);
        LsDpOptions o = {.budget = 8000, .cells = 64, .most_points = 64};
        for (o.greatest = false;; o.greatest = true) {
            o.unit = 1.9 * f->time[1];
            LsStrategy s;
            bool any = ls_partition(a, f, fam, &o).n > 0;
            ck_assert_int_eq(ls_exact_solve(a, x, &o, &s), any ? LS_EXACT_FOUND : LS_EXACT_NONE);
            if (o.greatest)
                break;
        }
    }
}
END_TEST

/* Least and greatest overhead within a budget, by a table with a place for every whole overhead,
 * filled as the paper says and without any pruning; costs 10 a convolution, 1 anything else. -1:
 * no strategy. */
START_TEST(published_graphs_give_the_figures_of_the_papers_table)
{
    static const struct { const char *file; int64_t budget; double least, greatest; } want[] = {
#include "tests/scheduler/exact_reference.def"
    };
    const char *file = "";
    LsExact *x = NULL;
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        if (strcmp(file, want[k].file) != 0) {
            file = want[k].file;
            LsDag *g = dag_shared(a, file);
            if (g == NULL)
                return;
            LsForward *f = ls_forward_new(a, ls_prob_new(a, g, true));
            x = ls_exact_new(a, f, ls_family_all(f, 40000), 0);
        }
        LsDpOptions o = {.budget = want[k].budget, .price_last = true};
        LsStrategy s;
        if (want[k].least < 0) {
            ck_assert_int_eq(ls_exact_solve(a, x, &o, &s), LS_EXACT_NONE);
            continue;
        }
        check_best(x, &o, want[k].least);
        o.greatest = true;
        check_best(x, &o, want[k].greatest);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("exact");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, no_strategy_is_better_on_small_random_graphs);
    tcase_add_test(tc, the_fronts_of_the_dp_hold_nothing_better_on_larger_graphs);
    tcase_add_test(tc, a_chain_is_cut_where_the_budget_wants_it);
    tcase_add_test(tc, a_graph_that_costs_nothing_has_strategies_too);
    tcase_add_test(tc, coarsely_rounded_times_lose_no_strategy);
    tcase_add_test(tc, published_graphs_give_the_figures_of_the_papers_table);
    return run_tests("exact", tc);
}
