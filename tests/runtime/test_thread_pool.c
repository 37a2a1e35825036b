/* tests/runtime/test_thread_pool.c -- the thread pool covers every range once, with any number of
 * threads. */
#include "runtime/engine/thread_pool.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static void count(LsRun *run, void *const arg[], int64_t lo, int64_t hi)
{
    (void)run;
    atomic_int *seen = arg[0];
    for (int64_t i = lo; i < hi; i++)
        atomic_fetch_add(&seen[i], 1);
}

static void add_one(LsRun *run, void *const arg[], int64_t lo, int64_t hi)
{
    (void)run;
    int *x = arg[0];
    for (int64_t i = lo; i < hi; i++)
        x[i] += 1;
}

START_TEST(every_unit_is_computed_exactly_once)
{
    static atomic_int seen[1000];
    for (int threads = 1; threads <= 5; threads++) {
        LsRun run = {.pool = ls_pool_create(threads)};
        ck_assert_ptr_nonnull(run.pool);
        ck_assert_int_eq(ls_pool_threads(run.pool), threads);
        for (int units = 0; units <= 1000; units += units < 70 ? 1 : 93) {
            for (int i = 0; i < 1000; i++)
                seen[i] = 0;
            ls_parallel(&run, count, units, (void *[]){seen});
            for (int i = 0; i < 1000; i++)
                ck_assert_int_eq(seen[i], i < units);
        }
        ls_pool_destroy(run.pool);
    }
}
END_TEST

START_TEST(a_call_returns_only_when_the_results_are_there)
{
    /* Plain loads and stores: a missing happens-before shows as a lost update. */
    int x[64] = {0};
    LsRun run = {.pool = ls_pool_create(3)};
    for (int round = 0; round < 20000; round++)
        ls_parallel(&run, add_one, 64, (void *[]){x});
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(x[i], 20000);
    ls_pool_destroy(run.pool);
}
END_TEST

START_TEST(threads_that_fell_asleep_come_back)
{
    int x[64] = {0};
    LsRun run = {.pool = ls_pool_create(2)};
    for (int round = 0; round < 20; round++) {
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        ls_parallel(&run, add_one, 64, (void *[]){x});
    }
    ck_assert_int_eq(x[63], 20);
    ls_pool_destroy(run.pool);
}
END_TEST

START_TEST(an_idle_pool_uses_no_processor_time)
{
    LsPool *pool = ls_pool_create(4);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    ck_assert((double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec) < 0.02);
    ls_pool_destroy(pool);
}
END_TEST

START_TEST(no_pool_means_the_calling_thread)
{
    int x[4] = {0};
    LsRun run = {0};
    ls_parallel(&run, add_one, 4, (void *[]){x});
    ck_assert_int_eq(x[3], 1);
    ls_pool_destroy(NULL);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("pool");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, every_unit_is_computed_exactly_once);
    tcase_add_test(tc, a_call_returns_only_when_the_results_are_there);
    tcase_add_test(tc, threads_that_fell_asleep_come_back);
    tcase_add_test(tc, an_idle_pool_uses_no_processor_time);
    tcase_add_test(tc, no_pool_means_the_calling_thread);
    return run_tests("pool", tc);
}
