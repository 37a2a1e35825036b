/* tests/runtime/test_comm_sockets.c -- ranks that meet over TCP: messages, strangers, wrong runs,
 * and networks that fail. */
#include "runtime/comm/comm_door.h"
#include "runtime/comm/comm_greet.h"
#include "runtime/comm/comm_meet.h"
#include "runtime/comm/comm_watch.h"
#include "tests/support/comm_cases.h"
#include "tests/support/comm_proxy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define RUN "plan 0123, seed 5417"
enum { RANKS = 8, VIA = 10 };   /* addresses of proxies begin with VIA */

typedef struct Seen {
    CommShared of_case;
    atomic_int harm;
    char error[RANKS][600];
    atomic_int opened, printed;
} Seen;
static Seen *seen;
static CommCase *running;
static int size, via;           /* a proxy stands before rank `via`; -1: none */
/* NULL: the right one */
static const char *run_of[RANKS], *token_of[RANKS], *program_of[RANKS];
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
    const LsMeetWish w = {peers, rank, ranks, run_of[rank] ? run_of[rank] : RUN, token_of[rank],
                          program_of[rank] ? program_of[rank] : "0123"};
    if (!ls_comm_meet(&w, &c, &silent, &e)) {
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

static void start_one(int rank)
{
    seen->of_case.code[rank] = 0;
    if ((pid[rank] = fork()) == 0)
        be_rank(rank);
}

static void start(CommCase *fn, int ranks)
{
    memset(seen, 0, sizeof *seen);
    size = ranks;
    running = fn;
    for (int k = 0; k < ranks; k++)
        start_one(k);
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
static void check_told(int ranks, int but, int code, const char *text, const char *or, int most)
{
    const CommShared *s = &seen->of_case;
    for (int k = 0; k < ranks; k++)
        if (k != but) {
            ck_assert_msg(finish(k) == code, "rank %d: %d, %s", k, s->code[k], s->text[k]);
            ck_assert_msg(strstr(s->text[k], text) != NULL
                              || (or [0] != '\0' && strstr(s->text[k], or) != NULL),
                          "rank %d: %s, not %s", k, s->text[k], text);
        }
    ck_assert_int_ge(s->told, 1);
    ck_assert_int_le(s->told, most);
}

static void check_failure(int ranks, int but, int code, const char *text)
{
    check_told(ranks, but, code, text, "", 1);
}

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

/* Ranks wait for rank 2, which never sends: one in wait, one in the barrier. Rank 3 computes, and
 * does not look. */
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
        ck_assert_msg(strstr(seen->of_case.text[k], text) != NULL, "rank %d: %s, not %s", k,
                      seen->of_case.text[k], text);
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
        ck_assert_ptr_nonnull(
            strstr(seen->of_case.text[k],
                   "gave no sign of life for 6 s")); /* who of whom is a matter of chance */
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
    static const struct { ProxyHarm harm; const char *text, *or; int most; } row[] = {
        {PROXY_SPLIT, "the connection to rank ", "", 1},
        {PROXY_RESET, "rank ", "", 2},        /* rank 0 and the others cannot tell each other */
        {PROXY_SPOIL, "is no message", "", 1},
        {PROXY_FLIP, "is no message", "changed on its way to rank ", 1},
    };
    for (int k = 0; k < 4; k++) {
        via = 0;                /* which all others call for the way of messages */
        atomic_store(&seen->harm, PROXY_PASS);
        const pid_t proxy = proxy_start(VIA, 0, &seen->harm);
        start(case_loop, 3);
        await(&seen->of_case.count, 30);
        atomic_store(&seen->harm, row[k].harm);
        check_told(3, -1, LS_EXIT_RANK, row[k].text, row[k].or, row[k].most);
        kill(proxy, SIGKILL);
        waitpid(proxy, NULL, 0);
    }
}
END_TEST

/* A sign of life that changed is not believed. */
START_TEST(a_bit_that_flips_on_a_channel_ends_all_ranks)
{
    via = 1;                    /* which rank 0 calls for the channel */
    atomic_store(&seen->harm, PROXY_PASS);
    const pid_t proxy = proxy_start(VIA + 1, 1, &seen->harm);
    start(case_loop, 2);
    await(&seen->of_case.count, 30);
    atomic_store(&seen->harm, PROXY_FLIP_LIFE);
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(finish(k), LS_EXIT_RANK);
        ck_assert_msg(strstr(seen->of_case.text[k], "a sign of life of rank ") != NULL, "%s",
                      seen->of_case.text[k]);
        ck_assert_msg(strstr(seen->of_case.text[k], " changed on its way to rank ") != NULL, "%s",
                      seen->of_case.text[k]);
    }
    kill(proxy, SIGKILL);
    waitpid(proxy, NULL, 0);
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
    const LsMeetWish w = {peers, 0, 2, RUN, NULL, "0123"};
    ck_assert(!ls_comm_meet(&w, &c, &silent, &e));
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

/* Rank 2 is wrong: it ends with that text, and the others wait for a right one, with which they
 * run. */
static void check_wrong(const char *text)
{
    start(case_barrier, 3);
    ck_assert_int_eq(finish(2), LS_EXIT_RANK);
    ck_assert_msg(strstr(seen->error[2], text) != NULL, "%s, not %s", seen->error[2], text);
    ck_assert_int_eq(seen->printed, 1);
    ck_assert_int_eq(seen->opened, 0);
    run_of[2] = program_of[2] = NULL;
    token_of[2] = token_of[0];
    size_of[2] = 0;
    start_one(2);
    for (int k = 0; k < 3; k++)
        ck_assert_msg(finish(k) == 0, "rank %d: %s", k, seen->of_case.text[k]);
    ck_assert_int_eq(seen->opened, 3);
}

START_TEST(a_rank_of_another_run_ends_and_the_others_wait)
{
    run_of[2] = "plan 4567, seed 5417";
    check_wrong("do not run the same: plan ");
    size_of[2] = 4;
    check_wrong("ranks, and rank ");
    program_of[2] = "4567";
    check_wrong(" for rank 0 is of another program than this rank, or has a token");
    token_of[2] = "a token of 16 ch";
    check_wrong(" for rank 0 has another token than this rank, or none");
    token_of[0] = token_of[1] = "the run's own token";
    token_of[2] = "the run's 0wn token";
    check_wrong(" for rank 0 has another token than this rank, or none");
    token_of[0] = token_of[1] = token_of[2] = NULL;
}
END_TEST

/* ---- strangers who know what ranks say ---- */

/* Calls rank k and says something; returns how many bytes it answers before it hangs up. */
static size_t say(int k, const void *what, size_t n, char *answer, size_t most)
{
    const struct timeval limit = {10, 0};
    const int fd = proxy_call(k);
    size_t got = 0;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ck_assert_int_eq(send(fd, what, n, MSG_NOSIGNAL), (ssize_t)n);
    shutdown(fd, SHUT_WR);
    for (ssize_t more; got < most && (more = recv(fd, answer + got, most - got, 0)) > 0; )
        got += (size_t)more;
    close(fd);
    return got;
}

/* Says a claim to rank 0, with a proof by that key, and returns its verdict; kind -1: none. */
static LsVerdict claim(const char *token, const char *program, LsClaim what, bool damaged)
{
    const LsHmac key = ls_greet_key(token, program);
    LsVerdict v = {.kind = -1};
    LsMet m;
    LsError e = {0};
    const int fd = proxy_call(0);
    ck_assert(ls_greet(&m, &e));
    ck_assert_int_eq(send(fd, &m.greeting, sizeof m.greeting, MSG_NOSIGNAL), sizeof m.greeting);
    ck_assert_int_eq(recv(fd, &m.welcome, sizeof m.welcome, MSG_WAITALL), sizeof m.welcome);
    ls_greet_prove(&key, &m, &what);
    what.run[3] ^= damaged;
    ck_assert_int_eq(send(fd, &what, sizeof what, MSG_NOSIGNAL), sizeof what);
    const ssize_t got = recv(fd, &v, sizeof v, MSG_WAITALL);
    ck_assert(got <= 0 || got == (ssize_t)sizeof v);
    if (got <= 0)
        v.kind = -1;
    else
        ck_assert(ls_greet_knows(&key, &m) && ls_greet_judged(&key, &m, &v));
    close(fd);
    return v;
}

/* Rank 0 waits for rank 1, and meets it in the end, whoever calls before. */
static void check_strangers(const char *token)
{
    static const char *const tell[] = {"5417", "plan", "seed"};
    static struct {
        char mark[8];
        int32_t version, size, rank, called, channel;
        char run[700];
    } old = {"LSRANK?", 1, 2, 1, 0, 0, "x"};
    const LsClaim right = {.size = 2, .rank = 1, .called = 0, .channel = 0, .run = RUN};
    char answer[2000];
    memset(seen, 0, sizeof *seen);
    size = 2;
    running = case_all_to_all;
    token_of[0] = token_of[1] = token;
    start_one(0);
    for (old.version = 1; old.version < 9; old.version += 6)
        ck_assert_uint_eq(say(0, &old, sizeof old, answer, sizeof answer), 0);
    LsGreeting g = {.nonce = {1, 2, 3}};
    LsMet met;
    ck_assert(ls_greet(&met, &(LsError){0}));
    memcpy(g.mark, met.greeting.mark, sizeof g.mark);
    struct { LsGreeting g; LsClaim c; } both = {g, right};
    const size_t n = say(0, &both, sizeof both, answer, sizeof answer);
    ck_assert_uint_eq(n, sizeof(LsWelcome));     /* nothing that tells of the run */
    for (size_t k = 0; k < sizeof tell / sizeof tell[0]; k++)
        ck_assert_ptr_null(memmem(answer, n, tell[k], strlen(tell[k])));
    ck_assert_int_eq(claim("a stranger's token", "0123", right, false).kind, -1);
    ck_assert_int_eq(claim(NULL, "other", right, false).kind, -1);
    if (token != NULL)
        ck_assert_int_eq(claim(NULL, "0123", right, false).kind, -1);
    ck_assert_int_eq(claim(token, "0123", right, true).kind, -1);
    /* Those who have the key are compared, and none of them ends the run. */
    static const LsClaim odd[] = {
        {.size = 2, .rank = -5, .run = RUN},
        {.size = 2, .rank = 0, .run = RUN},
        {.size = 2, .rank = 2, .run = RUN},
        {.size = 2, .rank = 1, .called = 1, .run = RUN},
        {.size = 3, .rank = 1, .run = RUN},
        {.size = 2, .rank = INT32_MIN, .run = RUN},
        {.size = 2, .rank = 1, .channel = 1, .run = RUN},
        {.size = -1, .rank = 1 << 20, .called = -7, .channel = 9, .run = RUN},
        {.size = 2, .rank = 1, .run = "plan 0123, seed \33[2J7"}};
    for (size_t k = 0; k < sizeof odd / sizeof odd[0]; k++) {
        const LsVerdict v = claim(token, "0123", odd[k], false);
        ck_assert_msg(v.kind == LS_DIFFERS || v.kind == LS_DOUBLE, "%d: %d", (int)k, v.kind);
    }
    start_one(1);
    for (int k = 0; k < 2; k++)
        ck_assert_msg(finish(k) == 0, "rank %d: %s", k, seen->error[k]);
    ck_assert_int_eq(seen->opened, 2);
    token_of[0] = token_of[1] = NULL;
}

START_TEST(strangers_learn_nothing_and_end_nothing)
{
    check_strangers(NULL);
    check_strangers("the run's own token");
}
END_TEST

/* Where there is no room, whoever was silent for longest makes room. */
START_TEST(the_oldest_guest_leaves_first)
{
    enum { LATE = 3 };
    const LsHmac key = ls_greet_key(NULL, "0123");
    int caller[LS_GUESTS + LATE];
    LsDoor d;
    ls_door_init(&d, &key);
    d.listener = proxy_listen(0);
    ck_assert_int_eq(fcntl(d.listener, F_SETFL, O_NONBLOCK), 0);
    for (int k = 0; k < LS_GUESTS + LATE; k++) {
        caller[k] = proxy_call(0);
        ls_door_let_in(&d, k);
    }
    for (int k = 0; k < LS_GUESTS + LATE; k++) {
        char byte;
        const ssize_t got = recv(caller[k], &byte, 1, k < LATE ? 0 : MSG_DONTWAIT);
        ck_assert_msg(got == (k < LATE ? 0 : -1), "caller %d: %d", k, (int)got);
        close(caller[k]);
    }
    ls_door_close(&d);
}
END_TEST

START_TEST(a_rank_that_is_started_twice_ends_itself)
{
    memset(seen, 0, sizeof *seen);
    size = 2;
    running = case_barrier;
    start_one(0);
    close(proxy_call(0));       /* it listens */
    const pid_t first = pid[0];
    start_one(0);
    ck_assert_int_eq(finish(0), LS_EXIT_RANK);
    ck_assert_msg(strstr(seen->error[0], "rank 0 cannot listen at ") != NULL
                      && strstr(seen->error[0], "the same rank twice") != NULL,
                  "%s", seen->error[0]);
    pid[0] = first;
    seen->of_case.code[0] = 0;
    start_one(1);
    for (int k = 0; k < 2; k++)
        ck_assert_msg(finish(k) == 0, "rank %d: %s", k, seen->of_case.text[k]);
}
END_TEST

START_TEST(a_rank_listens_at_its_own_address_alone)
{
    static const struct { const char *peers, *text;
    } row[] = {
        {"192.0.2.7:20001,127.0.0.1:20002",
         "192.0.2.7:20001 of rank 0 is no address of this machine"},
        {"[2001:db8::7]:20001,127.0.0.1:20002", "of rank 0 is no address of this machine"},
        {"0.0.0.0:20001,127.0.0.1:20002",
         "'0.0.0.0:20001' of rank 0 stands for all addresses of a machine"},
        {"127.0.0.1:20002,[::]:20001",
         "'[::]:20001' of rank 1 stands for all addresses of a machine"},
    };
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
        LsComm *c;
        LsError e = {0};
        bool silent = true;
        const LsMeetWish w = {row[k].peers, 0, 2, RUN, NULL, "0123"};
        ck_assert(!ls_comm_meet(&w, &c, &silent, &e) && !silent && c == NULL);
        ck_assert_int_eq(e.code, LS_EXIT_USAGE);
        ck_assert_msg(strstr(e.text, row[k].text) != NULL, "%s", e.text);
    }
}
END_TEST

/* Every bit of what two ends say before they are joined. */
START_TEST(any_bit_of_a_greeting_counts)
{
    const LsHmac key = ls_greet_key("the run's own token", NULL);
    static union {
        LsGreeting g;
        LsWelcome w;
        LsClaim c;
        LsVerdict v;
        unsigned char byte[1000];
    } sent, came;
    static const size_t bytes[] = {sizeof(LsGreeting), sizeof(LsWelcome), sizeof(LsClaim),
                                   sizeof(LsVerdict)};
    for (int what = 0; what < 4; what++)
        for (size_t bit = 0; bit < 8 * bytes[what]; bit++) {
            LsMet m;
            LsError e = {0};
            ck_assert(ls_greet(&m, &e) && ls_greet_back(&key, &m, &e) && ls_greet_knows(&key, &m));
            sent.c = (LsClaim){2, 1, 0, 1, RUN, {0}};
            if (what == 0)
                sent.g = m.greeting;
            else if (what == 1)
                sent.w = m.welcome;
            else if (what == 2)
                ls_greet_prove(&key, &m, &sent.c);
            if (what == 3) {
                sent.v = (LsVerdict){LS_TAKEN, "", {0}};
                ls_greet_judge(&key, &m, &sent.v);
            }
            came = sent;
            ck_assert(what != 2 || ls_greet_proved(&key, &m, &came.c));
            ck_assert(what != 3 || ls_greet_judged(&key, &m, &came.v));
            came = sent;
            came.byte[bit / 8] ^= (unsigned char)(1 << bit % 8);
            if (what == 0) {    /* whoever is called proves something else */
                LsMet other = {.greeting = came.g};
                ck_assert(ls_greet_back(&key, &other, &e));
                m.welcome = other.welcome;
                ck_assert(!ls_greet_is_greeting(&came.g, sizeof came.g)
                          || !ls_greet_knows(&key, &m));
            } else if (what == 1) {
                m.welcome = came.w;
                ck_assert(!ls_greet_is_welcome(&came.w, sizeof came.w)
                          || !ls_greet_knows(&key, &m));
            } else {
                ck_assert(what == 2 ? !ls_greet_proved(&key, &m, &came.c)
                                    : !ls_greet_judged(&key, &m, &came.v));
            }
        }
}
END_TEST

START_TEST(what_is_shown_of_a_peer_is_printable)
{
    const LsHmac key = ls_greet_key("the run's own token", NULL);
    LsMet m;
    LsError e = {0};
    LsClaim c = {2, 1, 0, 1, "plan \33[2J\r\xff", {0}};
    LsVerdict v = {LS_DIFFERS, "plan \33]0;x\7", {0}};
    ck_assert(ls_greet(&m, &e) && ls_greet_back(&key, &m, &e));
    ls_greet_prove(&key, &m, &c);
    ls_greet_judge(&key, &m, &v);
    ck_assert(ls_greet_proved(&key, &m, &c) && ls_greet_judged(&key, &m, &v));
    ck_assert_str_eq(c.run, "plan ?[2J??");
    ck_assert_str_eq(v.why, "plan ?]0;x?");
    memset(c.run, 'x', sizeof c.run);
    memset(v.why, 'x', sizeof v.why);
    ls_greet_prove(&key, &m, &c);
    ls_greet_judge(&key, &m, &v);
    ck_assert(ls_greet_proved(&key, &m, &c) && ls_greet_judged(&key, &m, &v));
    ck_assert(strlen(c.run) == sizeof c.run - 1 && strlen(v.why) == sizeof v.why - 1);
}
END_TEST

/* Every bit of a frame; and what a peer's text may do to a terminal. */
START_TEST(frames_are_believed_only_whole)
{
    int fd[2];
    LsFrame f;
    unsigned char secret[LS_SHA256] = {7};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    LsChannel from = {.fd = fd[0], .seal = ls_seal_key(secret)},
              to = {.fd = fd[1], .seal = ls_seal_key(secret)};
    LsError why = {(LsExit)-7, "data\33[2J\a\r\n\x80\xff of \xc3\xa9"};
    ls_channel_send(&from, LS_FRAME_FAILED, 1, &why);
    ck_assert_int_eq(recv(fd[1], &f, sizeof f, MSG_PEEK), sizeof f);
    ck_assert_int_eq(ls_channel_read(&to), 1);
    ck_assert_str_eq(to.in.text, "data?[2J????? of ??");
    ck_assert_int_eq(to.in.code, LS_EXIT_RANK);
    for (size_t bit = 0; bit < 8 * sizeof f; bit++) {
        unsigned char *byte = (unsigned char *)&f + bit / 8;
        *byte ^= (unsigned char)(1 << bit % 8);
        ck_assert_int_eq(send(fd[0], &f, sizeof f, 0), sizeof f);
        ck_assert_int_eq(ls_channel_read(&to), -2);
        *byte ^= (unsigned char)(1 << bit % 8);
    }
    close(fd[0]);
    close(fd[1]);
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
        a_rank_of_another_run_ends_and_the_others_wait,
        a_bit_that_flips_on_a_channel_ends_all_ranks,
        strangers_learn_nothing_and_end_nothing,
        the_oldest_guest_leaves_first,
        a_rank_that_is_started_twice_ends_itself,
        a_rank_listens_at_its_own_address_alone,
        any_bit_of_a_greeting_counts,
        what_is_shown_of_a_peer_is_printable,
        frames_are_believed_only_whole,
    };
    TCase *tc = tcase_create("comm_sockets");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_set_timeout(tc, 60);
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("comm_sockets", tc);
}
