/* tests/runtime/test_comm_local.c -- messages between ranks that are processes of this machine;
 * deaths of ranks and of their starter. */
#include "runtime/comm/comm_launch.h"
#include "tests/support/comm_cases.h"
#include "tests/support/suite.h"

#include <check.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static CommShared *shared;
static LsError why;             /* of the last run */

static void forget(void)
{
    if (shared == NULL)
        shared =
            mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    memset(shared, 0, sizeof *shared);
    why = (LsError){0};
}

/* Returns the exit code of the starter. */
static int run_ranks(CommCase *fn, int size)
{
    LsComm *c;
    int ended = -1;
    forget();
    const bool ok = ls_comm_launch(size, &c, &ended, &why);
    if (c != NULL) {
        const int rank = c->rank;
        fn(c, shared);
        _exit(shared->code[rank]);
    }
    return ok ? ended : (int)why.code;
}

START_TEST(messages_arrive_in_order_by_tag_whatever_their_lengths)
{
    for (int size = 1; size <= 5; size++)
        ck_assert_int_eq(run_ranks(case_all_to_all, size), 0);
}
END_TEST

START_TEST(large_messages_cross_each_other)
{
    for (int size = 1; size <= 3; size++)
        ck_assert_int_eq(run_ranks(case_exchange, size), 0);
}
END_TEST

START_TEST(nobody_leaves_a_barrier_before_all_have_come)
{
    for (int size = 1; size <= 4; size++)
        ck_assert_int_eq(run_ranks(case_barrier, size), 0);
}
END_TEST

START_TEST(lengths_that_differ_end_all_ranks_and_the_starter_tells)
{
    ck_assert_int_eq(run_ranks(case_mismatch, 4), LS_EXIT_CHECK);
    ck_assert_int_eq(shared->failed, 4);
    ck_assert_int_eq(shared->told, 0);
    ck_assert_str_eq(why.text, "rank 0 sends 100 bytes with tag 5, but rank 1 takes 96");
    for (int k = 0; k < 4; k++)
        ck_assert_str_eq(shared->text[k], why.text);
}
END_TEST

START_TEST(a_rank_that_gives_up_ends_all_others_with_its_reason)
{
    ck_assert_int_eq(run_ranks(case_abandon, 5), LS_EXIT_DATA);
    ck_assert_int_eq(shared->failed, 5);
    ck_assert_int_eq(shared->told, 0);
    ck_assert_str_eq(why.text, "rank 1: numbers.npy: no such file");
    for (int k = 0; k < 5; k++)
        ck_assert_str_eq(shared->text[k], why.text + (k == 1 ? strlen("rank 1: ") : 0));
}
END_TEST

START_TEST(nobody_waits_for_a_rank_that_has_ended)
{
    ck_assert_int_eq(run_ranks(case_early_end, 4), LS_EXIT_RANK);
    ck_assert_int_eq(shared->failed, 3);
    ck_assert_str_eq(why.text, "rank 1 ended while others still wait for it");
}
END_TEST

/* How rank 2 ends, while one rank waits for it and one is in the barrier; rank 1 may not look. */
static int death;
static bool busy;
static void case_death(LsComm *c, CommShared *s)
{
    LsError e = {0};
    LsTransfer x;
    char data[8];
    const bool met = c->engine->barrier(c, &e);     /* rank 2 may be through, and dead, when others
                                                     * are not */
    if (c->rank == 2 && death >= 0) {
        signal(death, SIG_DFL);         /* sanitizers have handlers */
        raise(death);
    }
    if (c->rank == 2)
        _exit(-death);
    while (c->rank == 1 && busy)
        pause();
    SEEN(!met
         || !(c->rank == 0
                  ? c->engine->receive(c, 2, 5, data, 8, &x, &e) && c->engine->wait(c, &x, &e)
                  : c->engine->barrier(c, &e)));
    comm_failed(c, s, &e);
    c->engine->close(c);
}

START_TEST(a_rank_that_dies_ends_all_others)
{
    static const struct { int how; const char *text; } row[] = {
        {SIGKILL, "rank 2 was killed by signal 9 (Killed)"},
        {SIGSEGV, "rank 2 was killed by signal 11 (Segmentation fault)"},
        {-3, "rank 2 ended in the middle of the run, with exit code 3"},
    };
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
        death = row[k].how;
        busy = k == 0;
        ck_assert_int_eq(run_ranks(case_death, 4), LS_EXIT_RANK);
        ck_assert_str_eq(why.text, row[k].text);
        ck_assert_int_eq(shared->told, 0);
        ck_assert_str_eq(shared->text[0], row[k].text);
        ck_assert_str_eq(shared->text[3], row[k].text);
        ck_assert_int_eq(shared->failed, busy ? 2 : 3);
        ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);       /* a busy rank was killed */
    }
}
END_TEST

/* Ranks that wait for a signal, and count it. */
static volatile sig_atomic_t got;
static void take(int number) { got = number; }
static void case_signal(LsComm *c, CommShared *s)
{
    LsError e = {0};
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    signal(SIGTERM, take);
    WORKS(c->engine->barrier(c, &e));
    atomic_fetch_add(&s->count, 1);
    while (!got)
        sigsuspend(&before);
    WORKS(c->engine->barrier(c, &e));
    s->code[c->rank] = 128 + got;
    c->engine->close(c);
}

/* The starter, in a process of its own; returns when its ranks wait. */
static pid_t start(CommCase *fn, int size)
{
    forget();
    const pid_t pid = fork();
    if (pid == 0)
        _exit(run_ranks(fn, size));
    while (atomic_load(&shared->count) < size)
        usleep(1000);
    return pid;
}

START_TEST(a_signal_for_the_starter_reaches_all_ranks_once)
{
    int status;
    const pid_t pid = start(case_signal, 3);
    kill(pid, SIGTERM);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM, "%x",
                  (unsigned)status);
}
END_TEST

static void case_pids(LsComm *c, CommShared *s)
{
    LsError e = {0};
    s->code[c->rank] = (int)getpid();
    WORKS(c->engine->barrier(c, &e));
    atomic_fetch_add(&s->count, 1);
    for (;;)
        pause();
}

START_TEST(no_rank_outlives_its_starter)
{
    int status;
    const pid_t pid = start(case_pids, 3);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    for (int k = 0; k < 3; k++)         /* the test's own limit ends it otherwise */
        while (kill(shared->code[k], 0) == 0) {
            char path[40], state[200] = "";
            snprintf(path, sizeof path, "/proc/%d/stat", shared->code[k]);
            FILE *f = fopen(path, "r");
            if (f != NULL && fgets(state, sizeof state, f) != NULL
                && strstr(state, ") Z ") != NULL) {
                fclose(f);
                break;          /* dead; whoever inherited it has not looked yet */
            }
            if (f != NULL)
                fclose(f);
            usleep(1000);
        }
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        messages_arrive_in_order_by_tag_whatever_their_lengths,
        large_messages_cross_each_other,
        nobody_leaves_a_barrier_before_all_have_come,
        lengths_that_differ_end_all_ranks_and_the_starter_tells,
        a_rank_that_gives_up_ends_all_others_with_its_reason,
        nobody_waits_for_a_rank_that_has_ended,
        a_rank_that_dies_ends_all_others,
        a_signal_for_the_starter_reaches_all_ranks_once,
        no_rank_outlives_its_starter,
    };
    TCase *tc = tcase_create("comm_local");
    tcase_set_timeout(tc, 60);
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("comm_local", tc);
}
