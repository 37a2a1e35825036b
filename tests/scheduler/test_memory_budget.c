/* Budgets of a process and of its arenas: what one leaves to the other. */
#include <check.h>
#include "scheduler/graph/memory_budget.h"
#include "tests/support/suite.h"

static const LsProcessBytes lanes = {.state = 700, .input = 200, .exchange = 100, .arenas = 3};
static const LsProcessBytes bare = {.arenas = 1};   /* of a training graph */

static int64_t left(const LsProcessBytes *p, LsBudget b, int64_t whole)
{
    const LsBudget arena = ls_budget_of_arena(&b, p);
    ck_assert_int_eq(arena.of, LS_BUDGET_OF_ARENA);
    return ls_budget_arena_bytes(&arena, whole);
}

START_TEST(a_process_has_what_it_keeps_and_its_arenas)
{
    ck_assert_int_eq(ls_process_fixed(&lanes), 1000);
    ck_assert_int_eq(ls_process_total(&lanes, 50), 1150);
    ck_assert_int_eq(ls_process_arena(&lanes, 1150), 50);
    ck_assert_int_eq(ls_process_arena(&lanes, 1152), 50);   /* the rest is too little for three */
    ck_assert_int_eq(ls_process_total(&bare, 50), 50);
}
END_TEST

START_TEST(a_budget_says_what_it_contains)
{
    const LsBudget all = {.of = LS_BUDGET_OF_PROCESS, .bytes = 1300}, arena = {.bytes = 1300};
    ck_assert_int_eq(left(&lanes, all, 0), 100);
    ck_assert_int_eq(left(&lanes, arena, 0), 1300);
    ck_assert_int_eq(left(&bare, all, 0), 1300);
    ck_assert_int_eq(left(&lanes, (LsBudget){.of = LS_BUDGET_OF_PROCESS, .percent = 25}, 400), 100);
}
END_TEST

/* 0 bytes would be no limit at all. */
START_TEST(what_leaves_nothing_is_a_limit_still)
{
    ck_assert_int_eq(left(&lanes, (LsBudget){.of = LS_BUDGET_OF_PROCESS, .bytes = 999}, 0), 1);
    ck_assert_int_eq(left(&lanes, (LsBudget){.of = LS_BUDGET_OF_PROCESS, .bytes = 1002}, 0), 1);
    ck_assert_int_eq(left(&lanes, (LsBudget){.percent = 1e-9}, 400), 1);
    ck_assert_int_eq(left(&lanes, (LsBudget){.of = LS_BUDGET_OF_PROCESS}, 400), 0);
    ck_assert_int_eq(left(&lanes, (LsBudget){.least = true}, 400), 0);
    ck_assert(ls_budget_is_none(&(LsBudget){.of = LS_BUDGET_OF_PROCESS}));
    ck_assert(!ls_budget_is_none(&(LsBudget){.least = true}));
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        a_process_has_what_it_keeps_and_its_arenas,
        a_budget_says_what_it_contains,
        what_leaves_nothing_is_a_limit_still,
    };
    TCase *tc = tcase_create("memory_budget");
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("memory_budget", tc);
}
