/* tests/scheduler/test_unplaced.c -- plans without offsets: only live bytes count. */
#include "scheduler/plan/plan_audit.h"
#include "scheduler/plan/planner.h"
#include "tests/support/dag_tools.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

#include <string.h>

#define QUICK(...) (LsPlanOptions){.effort = 2, .no_offsets = true, __VA_ARGS__}
/* Graphs this small are solved exactly. */
#define SOLVED(...) (LsPlanOptions){.effort = 10, .no_offsets = true, .unproven = true, __VA_ARGS__}

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

START_TEST(live_bytes_are_within_the_budget_at_no_more_than_packed_plans_cost)
{
    for (uint64_t seed = 1; seed <= (uint64_t)tests_part(6, 3); seed++) {
        LsDag *g = dag_make(a, 3 + (uint32_t)seed % 3, seed);
        LsPlan least, live, placed;
        LsPlanReport r, of_placed;
        char why[300];
        ck_assert(ls_plan(a, g, &SOLVED(.budget.least = true), &least, &r));
        ck_assert_int_eq(least.arena, least.live_peak);
        for (int part = 100; part >= 40; part -= 20) {
            int64_t budget = r.none_arena * part / 100;
            LsPlanOptions packed = SOLVED(.budget.bytes = budget);
            packed.no_offsets = false;
            bool fits = ls_plan(a, g, &SOLVED(.budget.bytes = budget), &live, &of_placed);
            ck_assert_int_eq(fits, budget >= least.live_peak);
            ck_assert(fits || !ls_plan(a, g, &packed, &placed, &of_placed));
            if (!fits)
                continue;
            ck_assert(live.unplaced);
            ck_assert_int_le(live.live_peak, budget);
            for (uint32_t k = 0; k < live.noffset; k++)
                ck_assert_int_eq(live.offset[k], -1);
            ck_assert_msg(ls_audit(g, &live, why, sizeof why), "%s", why);
            if (ls_plan(a, g, &packed, &placed, &of_placed))
                ck_assert_double_le(live.cost, placed.cost * (1 + 1e-12));
        }
    }
}
END_TEST

START_TEST(the_audit_counts_live_bytes_and_wants_no_places)
{
    LsDag *g = dag_make(a, 9, 62);
    LsPlan plan;
    LsPlanReport r;
    char why[300];
    ck_assert(ls_plan(a, g, &QUICK(.budget.least = true), &plan, &r));
    LsPlan wrong = plan;
    wrong.live_peak = wrong.arena = plan.live_peak - 1;
    ck_assert(!ls_audit(g, &wrong, why, sizeof why));
    wrong = plan;
    wrong.arena++;
    ck_assert(!ls_audit(g, &wrong, why, sizeof why));
    plan.offset[0] = 0;
    ck_assert(!ls_audit(g, &plan, why, sizeof why));
    ck_assert_msg(strstr(why, "has a place") != NULL, "%s", why);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("unplaced");
    const TTest *const tests[] = {
        live_bytes_are_within_the_budget_at_no_more_than_packed_plans_cost,
        the_audit_counts_live_bytes_and_wants_no_places};
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_set_timeout(tc, 300);
    add_tests(tc, sizeof tests / sizeof *tests, tests);
    return run_tests("unplaced", tc);
}
