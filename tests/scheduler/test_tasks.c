/* tests/scheduler/test_tasks.c -- parallel tasks: each is done once, and plans do not depend on the
 * number of processors. */
#include <check.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "scheduler/algorithms/tasks.h"
#include "scheduler/plan/planner.h"
#include "tests/support/dag_tools.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

enum { MANY = 1000 };

static void count(void *times, uint32_t k) { atomic_fetch_add((atomic_int *)times + k, 1); }

START_TEST(each_job_once)
{
    atomic_int times[MANY];
    for (uint32_t n = 0; n <= MANY; n = 3 * n + 1) {
        for (uint32_t k = 0; k < MANY; k++)
            atomic_init(&times[k], 0);
        ls_side_by_side(n, count, times);
        for (uint32_t k = 0; k < MANY; k++)
            ck_assert_int_eq(atomic_load(&times[k]), k < n);
    }
}
END_TEST

static void add_jobs(void *times) { ls_side_by_side(MANY, count, times); }

START_TEST(tasks_of_jobs)
{
    enum { TASKS = 8 };
    atomic_int times[MANY];
    LsTask *task[TASKS];
    for (uint32_t k = 0; k < MANY; k++)
        atomic_init(&times[k], 0);
    for (int k = 0; k < TASKS; k++)
        task[k] = ls_task_start(add_jobs, times);
    for (int k = 0; k < TASKS; k++)
        ls_task_wait(task[k]);
    for (uint32_t k = 0; k < MANY; k++)
        ck_assert_int_eq(atomic_load(&times[k]), TASKS);
}
END_TEST

/* The hash of the plan at this percentage of the live peak without recomputation; empty: no
 * plan. */
static void plan(const LsDag *g, int percent, char hash[17])
{
    LsPlan none, found;
    LsPlanReport r;
    LsPlanOptions o = {.effort = 2, .seconds = 0.1};
    ck_assert(ls_plan_none(a, g, &none));
    o.budget.bytes = none.live_peak * percent / 100;
    hash[0] = '\0';
    if (ls_plan(a, g, &o, &found, &r))
        memcpy(hash, r.hash, sizeof r.hash);
}

START_TEST(same_plan_on_one_processor)
{
    cpu_set_t all, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int k = 0; k < CPU_SETSIZE && CPU_COUNT(&one) == 0; k++)
        if (CPU_ISSET(k, &all))
            CPU_SET(k, &one);
    for (uint64_t seed = 1; seed <= (uint64_t)tests_part(6, 2); seed++) {
        char many[17], single[17];
        const LsDag *g = dag_make(a, 20, seed);
        plan(g, 70, many);
        ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
        ck_assert_int_eq(ls_processors(), 1);
        plan(g, 70, single);
        ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
        ck_assert_str_eq(many, single);
    }
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        each_job_once,
        tasks_of_jobs,
        same_plan_on_one_processor,
    };
    TCase *tc = tcase_create("parallel");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("parallel", tc);
}
