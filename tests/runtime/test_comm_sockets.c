/* tests/runtime/test_comm_sockets.c -- ranks that meet over TCP: messages, strangers, wrong runs, and networks that fail. */
#include "runtime/comm/comm_meet.h"
#include "tests/support/comm_cases.h"
#include "tests/support/comm_proxy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { RANKS = 8, VIA = 10 };   /* addresses of proxies begin with VIA */

typedef struct Seen { CommShared of_case; atomic_int harm; char error[RANKS][600]; atomic_int opened, printed; } Seen;
static Seen *seen;
static CommCase *running;
static int size, via;           /* a proxy stands before rank `via`; -1: none */
static const char *run_of[RANKS];
static int size_of[RANKS];      /* as the rank takes it; 0: the right one */
static pid_t pid[RANKS];

static void setup(void)
{
    setpgid(0, 0);              /* proxy_address depends on it */
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(seen, MAP_FAILED);
    via = -1;
}

static void list_peers(char *to, size_t n, int ranks, int rank)
{
    to[0] = '\0';
    for (int k = 0; k < ranks; k++) {
        char one[40];
        proxy_text(one, sizeof one, k == via && rank != via ? VIA + k : k);
        snprintf(to + strlen(to), n - strlen(to), "%s%s", k > 0 ? "," : "", one);
    }
}

static void be_rank(int rank)
{
    char peers[600];
    LsComm *c;
    LsError e = {0};
    bool silent;
    const int ranks = size_of[rank] > 0 ? size_of[rank] : size;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    list_peers(peers, sizeof peers, ranks, rank);
    if (!ls_comm_meet(peers, rank, ranks, run_of[rank] ? run_of[rank] : "plan 0123", &c, &silent, &e)) {
        snprintf(seen->error[rank], sizeof seen->error[rank], "%s", e.text);
        atomic_fetch_add(&seen->printed, !silent);
        /* Others may be through with their case, and have failed in it. */
        snprintf(seen->of_case.text[rank], sizeof seen->of_case.text[rank], "%s", e.text);
        seen->of_case.code[rank] = (int)e.code;
        atomic_fetch_add(&seen->of_case.told, !silent);
        _exit((int)e.code);
    }
    atomic_fetch_add(&seen->opened, 1);
    running(c, &seen->of_case);
    _exit(seen->of_case.code[rank]);
}

static void start(CommCase *fn, int ranks)
{
    memset(seen, 0, sizeof *seen);
    size = ranks;
    running = fn;
    for (int k = 0; k < ranks; k++)
        if ((pid[k] = fork()) == 0)
            be_rank(k);
}

/* Returns the exit code of a rank. */
static int finish(int rank)
{
    int status;
    ck_assert_int_eq(waitpid(pid[rank], &status, 0), pid[rank]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void run_well(CommCase *fn, int ranks)
{
    start(fn, ranks);
    for (int k = 0; k < ranks; k++)
        ck_assert_int_eq(finish(k), 0);
}

START_TEST(messages_arrive_in_order_by_tag_whatever_their_lengths)
{
    for (int ranks = 2; ranks <= 4; ranks++)
        run_well(case_all_to_all, ranks);
}
END_TEST

START_TEST(large_messages_cross_each_other)
{
    run_well(case_exchange, 2);
    run_well(case_exchange, 3);
}
END_TEST

START_TEST(nobody_leaves_a_barrier_before_all_have_come) { run_well(case_barrier, 4); }
END_TEST

START_TEST(messages_survive_short_reads)
{
    via = 1;
    const pid_t proxy = proxy_start(VIA + 1, 1, &seen->harm);
    start(case_all_to_all, 3);
    atomic_store(&seen->harm, PROXY_CHOP);
    for (int k = 0; k < 3; k++)
        ck_assert_int_eq(finish(k), 0);
    kill(proxy, SIGKILL);
}
END_TEST

/* A failure that all ranks see: every one ends with that code and text, and one prints it. */
static void check_told(int ranks, int but, int code, const char *text, int most)
{
    const CommShared *s = &seen->of_case;
    for (int k = 0; k < ranks; k++)
        if (k != but) {
            ck_assert_msg(finish(k) == code, "rank %d: %d, %s", k, s->code[k], s->text[k]);
            ck_assert_msg(strstr(s->text[k], text) != NULL, "rank %d: %s, not %s", k, s->text[k], text);
        }
    ck_assert_int_ge(s->told, 1);
    ck_assert_int_le(s->told, most);
}

static void check_failure(int ranks, int but, int code, const char *text) { check_told(ranks, but, code, text, 1); }

START_TEST(lengths_that_differ_end_all_ranks_and_one_tells)
{
    start(case_mismatch, 4);
    check_failure(4, -1, LS_EXIT_CHECK, "rank 0 sends 100 bytes with tag 5, but rank 1 takes 96");
}
END_TEST

START_TEST(a_rank_that_gives_up_ends_all_others_with_its_reason)
{
    start(case_abandon, 5);
    check_failure(5, -1, LS_EXIT_DATA, "numbers.npy: no such file");
}
END_TEST

START_TEST(nobody_waits_for_a_rank_that_has_ended)
{
    start(case_early_end, 4);
    ck_assert_int_eq(finish(1), 0);
    check_failure(4, 1, LS_EXIT_RANK, "rank 1 ended while others still wait for it");
}
END_TEST

/* Ranks wait for rank 2, which never sends: one in wait, one in the barrier. Rank 3 computes, and does not look. */
static void case_wait(LsComm *c, CommShared *s)
{
    LsError e = {0};
    LsTransfer x;
    char data[8];
    WORKS(c->engine->barrier(c, &e));
    atomic_fetch_add(&s->count, 1);
    while (c->rank >= 2)
        pause();
    SEEN(!(c->rank == 0 ? c->engine->receive(c, 2, 5, data, 8, &x, &e) && c->engine->wait(c, &x, &e)
                        : c->engine->barrier(c, &e)));
    comm_failed(c, s, &e);
    c->engine->close(c);
}

static void await(const atomic_int *count, int n)
{
    while (atomic_load(count) < n)
        usleep(1000);
}

/* What all ranks but the busy rank 3 say; that one is ended by its thread. */
static void check_busy_too(const char *text)
{
    ck_assert_int_eq(finish(3), LS_EXIT_RANK);
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(finish(k), LS_EXIT_RANK);
        ck_assert_msg(strstr(seen->of_case.text[k], text) != NULL, "rank %d: %s, not %s", k, seen->of_case.text[k], text);
    }
    ck_assert_int_eq(seen->of_case.told, 1);
}

START_TEST(a_rank_that_is_killed_ends_all_others)
{
    start(case_wait, 4);
    await(&seen->of_case.count, 4);
    kill(pid[2], SIGKILL);
    check_busy_too("rank 2 died: its connection was closed");
    ck_assert_int_eq(finish(2), -SIGKILL);
}
END_TEST

START_TEST(a_rank_that_is_stopped_ends_all_others)
{
    start(case_wait, 4);
    await(&seen->of_case.count, 4);
    kill(pid[2], SIGSTOP);
    check_busy_too("rank 2 gave no sign of life for 6 s");
    kill(pid[2], SIGKILL);
    finish(2);
}
END_TEST

START_TEST(a_network_that_goes_silent_ends_all_ranks)
{
    via = 2;
    const pid_t proxy = proxy_start(VIA + 2, 2, &seen->harm);
    start(case_wait, 4);
    await(&seen->of_case.count, 4);
    kill(proxy, SIGSTOP);
    finish(3);
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(finish(k), LS_EXIT_RANK);
        ck_assert_ptr_nonnull(strstr(seen->of_case.text[k], "gave no sign of life for 6 s"));     /* who of whom is a matter of chance */
    }
    kill(proxy, SIGKILL);
    kill(pid[2], SIGKILL);
    finish(2);
}
END_TEST

/* Ranks send to each other until something happens. */
static void case_loop(LsComm *c, CommShared *s)
{
    LsError e = {0};
    while (c->engine->barrier(c, &e))
        atomic_fetch_add(&s->count, 1);
    comm_failed(c, s, &e);
    c->engine->close(c);
}

START_TEST(a_connection_that_breaks_or_is_spoilt_ends_all_ranks)
{
    static const struct { ProxyHarm harm; const char *text; int most; } row[] = {
        {PROXY_SPLIT, "the connection to rank ", 1},
        {PROXY_RESET, "rank ", 2},        /* rank 0 and the others cannot tell each other */
        {PROXY_SPOIL, "is no message", 1},
    };
    for (int k = 0; k < 3; k++) {
        via = 0;                /* which all others call for the way of messages */
        atomic_store(&seen->harm, PROXY_PASS);
        const pid_t proxy = proxy_start(VIA, 0, &seen->harm);
        start(case_loop, 3);
        await(&seen->of_case.count, 30);
        atomic_store(&seen->harm, row[k].harm);
        check_told(3, -1, LS_EXIT_RANK, row[k].text, row[k].most);
        kill(proxy, SIGKILL);
        waitpid(proxy, NULL, 0);
    }
}
END_TEST

/* Strangers call at every rank's address before the ranks meet, and while they do. */
START_TEST(strangers_do_no_harm)
{
    memset(seen, 0, sizeof *seen);
    static const char web[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n", half[] = "LSRA";
    start(case_all_to_all, 3);
    for (int k = 0; k < 3; k++) {
        if (atomic_load(&seen->opened) > 0)
            break;
        const pid_t stranger = fork();
        if (stranger == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            const int a = proxy_call(k), b = proxy_call(k), c = proxy_call(k);
            (void)!write(a, web, sizeof web);
            (void)!write(b, half, sizeof half);
            (void)c;
            for (;;)
                pause();
        }
    }
    for (int k = 0; k < 3; k++)
        ck_assert_int_eq(finish(k), 0);
    ck_assert_int_eq(seen->opened, 3);
}
END_TEST

/* A listener that is no rank of this run stands for rank 1. */
static void check_listener(const char *answer, const char *text)
{
    char peers[100], one[40];
    LsComm *c;
    LsError e = {0};
    bool silent = true;
    const int listener = proxy_listen(1);
    const pid_t other = fork();
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            const int fd = accept(listener, NULL, NULL);
            if (answer[0] != '\0')
                (void)!write(fd, answer, 700);
        }
    }
    close(listener);
    proxy_text(peers, sizeof peers, 0);
    proxy_text(one, sizeof one, 1);
    strcat(strcat(peers, ","), one);
    ck_assert(!ls_comm_meet(peers, 0, 2, "plan 0123", &c, &silent, &e));
    ck_assert_ptr_null(c);
    ck_assert(!silent);
    ck_assert_int_eq(e.code, LS_EXIT_RANK);
    ck_assert_msg(strstr(e.text, text) != NULL, "%s", e.text);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
}

START_TEST(what_is_no_rank_is_named)
{
    static const char http[700] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    check_listener(http, "is no rank of a run");
    check_listener("", "says nothing: it hangs, or is no rank");
}
END_TEST

/* Ranks that do not mean the same run: all end, and those of the right run say it once. Either may call the other. */
static void check_wrong(const char *text, const char *or)
{
    start(case_barrier, 3);
    for (int k = 0; k < 3; k++) {
        ck_assert_int_eq(finish(k), LS_EXIT_RANK);
        ck_assert_msg(strstr(seen->error[k], text) != NULL || strstr(seen->error[k], or) != NULL, "rank %d: %s, not %s", k,
                      seen->error[k], text);
    }
    ck_assert_int_eq(seen->opened, 0);
    ck_assert_int_ge(seen->printed, 1);
    ck_assert_int_le(seen->printed, 2);         /* the wrong rank says it where it runs */
}

START_TEST(ranks_of_different_runs_are_told_apart)
{
    run_of[2] = "plan 4567";
    check_wrong("do not run the same: plan 4567; and plan 0123", "do not run the same: plan 0123; and plan 4567");
    run_of[2] = NULL;
    size_of[2] = 4;
    check_wrong("rank 2 is of 4 ranks, and rank ", "is of 3 ranks, and rank 2 of 4");
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        messages_arrive_in_order_by_tag_whatever_their_lengths,
        large_messages_cross_each_other,
        nobody_leaves_a_barrier_before_all_have_come,
        messages_survive_short_reads,
        lengths_that_differ_end_all_ranks_and_one_tells,
        a_rank_that_gives_up_ends_all_others_with_its_reason,
        nobody_waits_for_a_rank_that_has_ended,
        a_rank_that_is_killed_ends_all_others,
        a_rank_that_is_stopped_ends_all_others,
        a_network_that_goes_silent_ends_all_ranks,
        a_connection_that_breaks_or_is_spoilt_ends_all_ranks,
        strangers_do_no_harm,
        what_is_no_rank_is_named,
        ranks_of_different_runs_are_told_apart,
    };
    TCase *tc = tcase_create("comm_sockets");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_set_timeout(tc, 60);
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("comm_sockets", tc);
}
