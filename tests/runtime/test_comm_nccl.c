/* tests/runtime/test_comm_nccl.c -- messages by NCCL, for which an NCCL of the tests' own stands:
 * no GPU has seen this. */
#include "runtime/comm_nccl/comm_nccl.h"
#include "tests/support/comm_cases.h"
#include "tests/support/comm_in_threads.h"
#include "tests/support/fake_nccl.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dlfcn.h>
#include <sched.h>

static FakeNccl *fake;
static FakeNcclQuery *query;
static CommShared shared;
static CommCase *running;
static char stream_of[8];
static LsError why[8];          /* of ranks that do not open */

static void setup(void)
{
    setenv("LOWERSET_NCCL", LS_FAKE_NCCL, 1);
    void *so = dlopen(LS_FAKE_NCCL, RTLD_NOW);
    ck_assert_msg(so != NULL, "%s", dlerror());
    fake = dlsym(so, "fake_nccl");
    void *f = dlsym(so, "fake_nccl_query");
    memcpy(&query, &f, sizeof f);
}

static void *rank_main(void *arg)
{
    LsComm *under = arg;
    const int rank = under->rank;
    LsComm *c =
        ls_comm_nccl(under, (LsNcclStream){&stream_of[rank], query, FAKE_NCCL_BUSY}, &why[rank]);
    if (c != NULL) {
        running(c, &shared);
    } else {
        atomic_fetch_add(&shared.told, under->engine->abandon(under, &why[rank]));
        under->engine->close(under);
    }
    return NULL;
}

static void run_ranks(CommCase *fn, int size)
{
    memset(&shared, 0, sizeof shared);
    memset(why, 0, sizeof why);
    running = fn;
    comm_run_in_threads(rank_main, size);
}

static void check_ends(int size, bool well)
{
    ck_assert_int_eq(fake->made, size);
    ck_assert_int_eq(fake->destroyed, well ? size : 0);
    ck_assert_int_eq(fake->aborted, well ? 0 : size);
    ck_assert_int_eq(fake->misused, 0);
    fake->made = fake->destroyed = fake->aborted = 0;
}

/* Every rank sends to every other, several messages with tags of their own, one of them empty. */
static void case_scatter(LsComm *c, CommShared *s)
{
    enum { EACH = 3 };
    (void)s;
    static const int64_t bytes[EACH] = {1000, 0, 70001};
    LsError e = {0};
    LsTransfer out[8][EACH], in[8][EACH];
    unsigned char *to[8][EACH], *from[8][EACH];
    for (int p = 0; p < c->size; p++)
        for (int k = 0; k < EACH && p != c->rank; k++) {
            to[p][k] = malloc((size_t)bytes[k] + 1);
            from[p][k] = calloc(1, (size_t)bytes[k] + 1);
            for (int64_t i = 0; i < bytes[k]; i++)
                to[p][k][i] = comm_byte(c->rank, k, i);
            WORKS(c->engine->receive(c, p, (uint32_t)k, from[p][k], bytes[k], &in[p][k], &e));
            WORKS(c->engine->send(c, p, (uint32_t)k, to[p][k], bytes[k], &out[p][k], &e));
        }
    for (int p = c->size - 1; p >= 0; p--)
        for (int k = 0; k < EACH && p != c->rank; k++) {
            WORKS(c->engine->wait(c, &in[p][k], &e));
            for (int64_t i = 0; i < bytes[k]; i++)
                SEEN(from[p][k][i] == comm_byte(p, k, i));
        }
    for (int p = 0; p < c->size; p++)
        for (int k = 0; k < EACH && p != c->rank; k++) {
            WORKS(c->engine->wait(c, &out[p][k], &e));
            free(to[p][k]);
            free(from[p][k]);
        }
    c->engine->close(c);
}

/* A rank answers what it got: its send is in a later group than its receive. */
static void case_answer(LsComm *c, CommShared *s)
{
    (void)s;
    LsError e = {0};
    LsTransfer x, y;
    char a[50], b[50] = "";
    memset(a, c->rank + 1, sizeof a);
    if (c->rank == 0) {
        WORKS(c->engine->send(c, 1, 1, a, 50, &x, &e)
              && c->engine->receive(c, 1, 2, b, 50, &y, &e));
        WORKS(c->engine->wait(c, &x, &e) && c->engine->wait(c, &y, &e));
        SEEN(b[0] == 3 && b[49] == 3);
    } else {
        WORKS(c->engine->receive(c, 0, 1, b, 50, &x, &e) && c->engine->wait(c, &x, &e));
        for (int i = 0; i < 50; i++)
            b[i] = (char)(b[i] + a[i]);
        WORKS(c->engine->send(c, 0, 2, b, 50, &y, &e) && c->engine->wait(c, &y, &e));
    }
    c->engine->close(c);
}

START_TEST(messages_go_as_groups_that_wait_for_nobody)
{
    run_ranks(case_scatter, 4);
    check_ends(4, true);
    run_ranks(case_exchange, 3);
    check_ends(3, true);
    run_ranks(case_barrier, 3);
    check_ends(3, true);
    run_ranks(case_answer, 2);
    check_ends(2, true);
}
END_TEST

/* Tags in another order at the receiver: NCCL would give it the wrong bytes. */
static void case_order(LsComm *c, CommShared *s)
{
    LsError e = {0};
    LsTransfer x[2];
    char data[2][8] = {"1234567", "abcdefg"};
    const int other = 1 - c->rank;
    bool ok = true;
    for (int k = 0; k < 2 && ok; k++)
        ok = c->rank == 0 ? c->engine->send(c, other, (uint32_t)(10 + k), data[k], 8, &x[k], &e)
                          : c->engine->receive(c, other, (uint32_t)(11 - k), data[k], 8, &x[k], &e);
    for (int k = 0; k < 2 && ok; k++)
        ok = c->engine->wait(c, &x[k], &e);
    ok = ok && c->engine->barrier(c, &e);
    SEEN(!ok);
    comm_failed(c, s, &e);
    c->engine->close(c);
}

START_TEST(messages_in_another_order_are_no_messages)
{
    run_ranks(case_order, 2);
    ck_assert_int_eq(shared.told, 1);
    ck_assert_ptr_nonnull(
        strstr(shared.text[0], "rank 0 sends 8 bytes with tag 10, but rank 1 takes 8 with tag 11"));
    check_ends(2, false);
}
END_TEST

START_TEST(a_rank_that_gives_up_aborts_the_work_of_all_gpus)
{
    run_ranks(case_abandon, 4);
    ck_assert_int_eq(shared.failed, 4);
    ck_assert_int_eq(shared.told, 1);
    ck_assert_str_eq(shared.text[3], "rank 1: numbers.npy: no such file");
    check_ends(4, false);
}
END_TEST

/* NCCL breaks while rank 0 waits for a message that rank 1 has named and not launched. */
static void case_async(LsComm *c, CommShared *s)
{
    LsError e = {0};
    LsTransfer x;
    char data[8] = "";
    if (c->rank == 0) {
        WORKS(c->engine->receive(c, 1, 1, data, 8, &x, &e));
    } else {
        WORKS(c->engine->send(c, 0, 1, data, 8, &x, &e));
        while (atomic_load(&s->failed) == 0)
            sched_yield();
    }
    SEEN(!c->engine->wait(c, &x, &e));
    comm_failed(c, s, &e);
    c->engine->close(c);
}

START_TEST(errors_of_nccl_are_named)
{
    fake->fail_init = 1;
    run_ranks(case_exchange, 2);
    ck_assert_int_eq(shared.told, 1);
    ck_assert_str_eq(why[0].text, "NCCL: ncclCommInitRank: unhandled cuda error");
    ck_assert_int_eq(why[0].code, LS_EXIT_DEVICE);
    fake->fail_init = 0;
    fake->async_error = 1;
    run_ranks(case_async, 2);
    ck_assert_int_eq(shared.told, 1);
    ck_assert_ptr_nonnull(strstr(shared.text[0], "NCCL: a message: unhandled cuda error"));
    check_ends(2, false);
    fake->async_error = 0;
}
END_TEST

START_TEST(libraries_that_cannot_serve_are_named)
{
    fake->version = 2604;
    run_ranks(case_exchange, 1);
    ck_assert_str_eq(why[0].text, "NCCL: the library is version 2604, 2.7 or later is needed");
    setenv("LOWERSET_NCCL", "/nowhere/libnccl.so", 1);
    run_ranks(case_exchange, 1);
    ck_assert_ptr_nonnull(
        strstr(why[0].text, "/nowhere/libnccl.so, named by LOWERSET_NCCL, does not open"));
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        messages_go_as_groups_that_wait_for_nobody,
        messages_in_another_order_are_no_messages,
        a_rank_that_gives_up_aborts_the_work_of_all_gpus,
        errors_of_nccl_are_named,
        libraries_that_cannot_serve_are_named,
    };
    TCase *tc = tcase_create("comm_nccl");
    tcase_add_checked_fixture(tc, setup, NULL);
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("comm_nccl", tc);
}
