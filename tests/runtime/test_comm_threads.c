/* tests/runtime/test_comm_threads.c -- messages between ranks that are threads of one process. */
#include "tests/support/comm_cases.h"
#include "tests/support/comm_in_threads.h"
#include "tests/support/suite.h"

#include <check.h>

static CommShared shared;
static CommCase *running;

static void *rank_main(void *arg)
{
    running(arg, &shared);
    return NULL;
}

static void run_ranks(CommCase *fn, int size)
{
    memset(&shared, 0, sizeof shared);
    running = fn;
    comm_run_in_threads(rank_main, size);
}

START_TEST(messages_arrive_in_order_by_tag_whatever_their_lengths)
{
    for (int size = 1; size <= 5; size++)
        run_ranks(case_all_to_all, size);
}
END_TEST

START_TEST(large_messages_cross_each_other)
{
    run_ranks(case_exchange, 1);        /* a rank may send to itself */
    run_ranks(case_exchange, 2);
    run_ranks(case_exchange, 3);
}
END_TEST

START_TEST(nobody_leaves_a_barrier_before_all_have_come)
{
    for (int size = 1; size <= 4; size++)
        run_ranks(case_barrier, size);
}
END_TEST

START_TEST(lengths_that_differ_end_all_ranks_and_one_tells)
{
    run_ranks(case_mismatch, 4);
    ck_assert_int_eq(shared.failed, 4);
    ck_assert_int_eq(shared.told, 1);
    for (int k = 0; k < 4; k++)
        ck_assert_msg(
            strstr(shared.text[k], "rank 0 sends 100 bytes with tag 5, but rank 1 takes 96")
                != NULL,
            "%s", shared.text[k]);
}
END_TEST

START_TEST(a_rank_that_gives_up_ends_all_others_with_its_reason)
{
    run_ranks(case_abandon, 5);
    ck_assert_int_eq(shared.failed, 5);
    ck_assert_int_eq(shared.told, 1);
    for (int k = 0; k < 5; k++) {
        ck_assert_str_eq(shared.text[k], k == 1 ? "numbers.npy: no such file"
                                                : "rank 1: numbers.npy: no such file");
        ck_assert_int_eq(shared.code[k], LS_EXIT_DATA);
    }
}
END_TEST

START_TEST(nobody_waits_for_a_rank_that_has_ended)
{
    run_ranks(case_early_end, 4);
    ck_assert_int_eq(shared.failed, 3);
    ck_assert_int_eq(shared.told, 1);
    ck_assert_str_eq(shared.text[0], "rank 1 ended while others still wait for it");
    ck_assert_int_eq(shared.code[0], LS_EXIT_RANK);
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        messages_arrive_in_order_by_tag_whatever_their_lengths,
        large_messages_cross_each_other,
        nobody_leaves_a_barrier_before_all_have_come,
        lengths_that_differ_end_all_ranks_and_one_tells,
        a_rank_that_gives_up_ends_all_others_with_its_reason,
        nobody_waits_for_a_rank_that_has_ended,
    };
    TCase *tc = tcase_create("comm_threads");
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("comm_threads", tc);
}
