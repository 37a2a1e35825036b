/* tests/runtime/test_comm_link.c -- messages on a stream of bytes, of which a part has come: which receiver gets what. */
#include "runtime/comm/comm_link.h"
#include "tests/support/suite.h"

#include <check.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static LsLink link_;
static int far;                 /* the other end */

static void setup(void)
{
    int fd[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    link_ = (LsLink){.rank = 0, .peer = 1, .out = fd[0], .in = fd[0]};
    far = fd[1];
}

static void teardown(void)
{
    ls_link_close(&link_);
    close(far);
}

static void put(const void *data, size_t n) { ck_assert_int_eq(write(far, data, n), (ssize_t)n); }
static void put_head(uint32_t tag, int64_t bytes) { put(&(LsLinkHead){0x4c536d73, tag, bytes}, sizeof(LsLinkHead)); }
static void move(void)
{
    LsError e = {0};
    ck_assert_msg(ls_link_move(&link_, &e), "%s", e.text);
}
static void want(LsLinkMessage *m, uint32_t tag, char *data, int64_t bytes)
{
    LsError e = {0};
    *m = (LsLinkMessage){.data = (unsigned char *)data, .bytes = bytes, .tag = tag};
    ck_assert_msg(ls_link_receive(&link_, m, &e), "%s", e.text);
}

START_TEST(a_message_that_half_came_before_it_was_named_has_one_receiver)
{
    char first[11] = "", second[11] = "", other[4] = "";
    LsLinkMessage a, b, c;
    put_head(1, 10);
    put("01234", 5);
    want(&c, 2, other, 3);
    move();
    want(&a, 1, first, 10);     /* takes what is coming */
    want(&b, 1, second, 10);    /* the next one */
    put("56789", 5);
    put_head(1, 10);
    put("abcdefghij", 10);
    put_head(2, 3);
    put("xyz", 3);
    move();
    ck_assert(a.done && b.done && c.done);
    ck_assert_str_eq(first, "0123456789");
    ck_assert_str_eq(second, "abcdefghij");
    ck_assert_str_eq(other, "xyz");
}
END_TEST

START_TEST(nothing_is_read_that_nobody_waits_for)
{
    char data[4] = "";
    LsLinkMessage m;
    put_head(1, 3);
    put("abc", 3);
    move();
    ck_assert_int_eq(ls_link_events(&link_), 0);
    ck_assert_ptr_null(link_.stored);
    want(&m, 1, data, 3);
    ck_assert_int_eq(ls_link_events(&link_), POLLIN);
    move();
    ck_assert(m.done && strcmp(data, "abc") == 0);
    ck_assert_int_eq(ls_link_events(&link_), 0);
}
END_TEST

/* The head is there before it is named: no byte more will come. */
START_TEST(a_message_without_bytes_is_complete_with_its_head)
{
    char data[4] = "";
    LsLinkMessage m, n;
    put_head(1, 3);
    put("abc", 3);
    put_head(2, 0);
    want(&m, 1, data, 3);
    move();
    want(&n, 2, NULL, 0);
    move();
    ck_assert(m.done && n.done);
    put_head(3, 0);
    want(&m, 4, NULL, 0);
    move();                     /* stored */
    want(&n, 3, NULL, 0);
    ck_assert(n.done && !m.done);
    ck_assert(ls_link_waits(&link_));
}
END_TEST

START_TEST(what_is_no_message_or_ends_early_is_seen)
{
    char data[8];
    LsLinkMessage m;
    LsError e = {0};
    want(&m, 1, data, 8);
    put_head(1, 8);
    put("half", 4);
    move();
    ck_assert(!m.done);
    shutdown(far, SHUT_WR);
    move();
    ck_assert(link_.closed && link_.broken == 0 && ls_link_waits(&link_));
    teardown();
    setup();
    want(&m, 1, data, 8);
    put("GET / HTTP/1.1\r\n", 16);
    ck_assert(!ls_link_move(&link_, &e));
    ck_assert_str_eq(e.text, "what rank 1 sends is no message");
    teardown();
    setup();
    e = (LsError){0};
    want(&m, 1, data, 8);
    put_head(1, 9);
    ck_assert(!ls_link_move(&link_, &e));
    ck_assert_str_eq(e.text, "rank 1 sends 9 bytes with tag 1, but rank 0 takes 8");
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        a_message_that_half_came_before_it_was_named_has_one_receiver,
        nothing_is_read_that_nobody_waits_for,
        a_message_without_bytes_is_complete_with_its_head,
        what_is_no_message_or_ends_early_is_seen,
    };
    TCase *tc = tcase_create("comm_link");
    tcase_add_checked_fixture(tc, setup, teardown);
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("comm_link", tc);
}
