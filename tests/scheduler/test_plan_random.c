/* tests/scheduler/test_plan_random.c -- auto on random graphs: audited, and compared with the
 * search of all schedules. */
#include <check.h>
#include <string.h>

#include "scheduler/plan/plan_audit.h"
#include "scheduler/plan/planner.h"
#include "tests/support/exhaust.h"
#include "tests/support/less.h"
#include "tests/support/random_graph.h"
#include "tests/support/suite.h"

static const LsPlanOptions quick = {.effort = 1, .seconds = 1e6};

/* Takes the planner's plan for one budget, audits it and returns its cost; -1: nothing fits. */
static double ask(LsPlanner *planner, const LsDag *g, int64_t budget)
{
    char why[400];
    LsPlan plan;
    LsPlanReport r;
    if (!ls_planner_ask(planner, "auto", budget, &plan, &r)) {
        ck_assert_ptr_nonnull(r.error);
        return -1;
    }
    ck_assert_msg(ls_audit(g, &plan, why, sizeof why), "%s at %ld: %s", g->name, (long)budget,
                  why);
    ck_assert_msg(budget <= 0 || plan.arena <= budget, "%s at %ld", g->name, (long)budget);
    ck_assert_msg(r.bound <= plan.cost * (1 + 1e-9) + 1e-9, "%s at %ld: bound %g, cost %g",
                  g->name, (long)budget, r.bound, plan.cost);
    ck_assert_int_le(r.least_bound, plan.live_peak);
    return plan.cost;
}

START_TEST(random_graphs_get_plans_that_hold)
{
    enum { STEPS = 4 };
    const int graphs = tests_part(2000, 80);
    int tight = 0;
    for (uint64_t seed = 0; seed < (uint64_t)graphs; seed++) {
        char why[400];
        LsArena *a = ls_arena_new();
        bool large = seed % 16 == 0;
        LsDag *g = random_graph(a, 1 + seed % (large ? 11 : 5), 1 + seed % (large ? 13 : 6), seed);
        ck_assert_msg(ls_dag_check(g, why, sizeof why), "%s: %s", g->name, why);
        LsPlan none;
        LsPlanOptions o = quick;
        ck_assert(ls_plan_none(a, g, &none));
        LsPlanner *planner = ls_planner_new(a, g, &o);
        double before = ask(planner, g, 0);
        ck_assert_msg(before >= 0, "%s has no plan at all", g->name);
        for (int k = 0; k < STEPS && before >= 0; k++) {
            double cost = ask(planner, g, none.arena * (10 - 2 * k) / 10);
            ck_assert_msg(cost < 0 || cost >= before, "%s is not monotone", g->name);
            before = cost;
            tight += cost >= 0 && k > 0;
        }
        ls_planner_free(planner);
        ls_arena_free(a);
    }
    ck_assert_int_gt(tight, graphs / 10);
}
END_TEST

/* Here an alternative comes before a node that must run; without a check nobody would miss that
 * node. */
START_TEST(what_must_run_stays_though_an_alternative_has_run)
{
    LsArena *a = ls_arena_new();
    LsDag *g = random_graph(a, 9, 8, 16);
    LsPlanOptions o = quick;
    LsPlanner *planner = ls_planner_new(a, g, &o);
    ck_assert_double_ge(ask(planner, g, 0), 0);
    ls_planner_free(planner);
    ls_arena_free(a);
}
END_TEST

START_TEST(tiny_graphs_are_planned_as_well_as_can_be)
{
    const uint64_t graphs = (uint64_t)tests_part(160, 20);
    int plans = 0, missed = 0, best_found = 0;
    double excess = 0, worst = 0;
    for (uint64_t seed = 0; seed < graphs; seed++) {
        LsArena *a = ls_arena_new();
        LsDag *g = random_graph(a, 2 + seed % 4, 2 + seed % 2, 5000 + seed);
        g->alignment = 1;
        LsPlan none;
        LsPlanOptions o = {.seconds = 1e6, .effort = 30};
        ck_assert(ls_plan_none(a, g, &none));
        LsPlanner *planner = ls_planner_new(a, g, &o);
        for (int part = 9; part >= 5; part--) {
            int64_t budget = none.live_peak * part / 10;
            double best = exhaust(g, true, false, (double)budget), base = none.base_cost;
            if (best < 0)
                continue;
            double cost = ask(planner, g, budget);
            plans++;
            missed += cost < 0;
            ck_assert_msg(cost < 0 || cost >= best - 1e-9, "%s beats the search of all", g->name);
            best_found += cost >= 0 && cost <= best + 1e-9;
            if (cost < 0 || base <= 0)
                continue;
            excess += (cost - best) / base;
            worst = fmax(worst, (cost - best) / base);
        }
        ls_planner_free(planner);
        ls_arena_free(a);
    }
    printf("%d plans: %d not found, %d as good as can be, %.2f points too dear on average, %.1f at "
           "worst\n", plans, missed, best_found, 100 * excess / (plans - missed), 100 * worst);
    ck_assert_int_gt(plans, (int)graphs / 3);
    ck_assert_int_eq(missed, 0);
    ck_assert_int_eq(best_found, plans - missed);
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        random_graphs_get_plans_that_hold,
        what_must_run_stays_though_an_alternative_has_run,
        tiny_graphs_are_planned_as_well_as_can_be,
    };
    TCase *tc = tcase_create("plan_random");
    tcase_set_timeout(tc, 500);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("plan_random", tc);
}
