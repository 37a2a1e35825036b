/* tests/runtime/test_comm_link.c -- messages on a stream of bytes, of which a part has come: which
 * receiver gets what. */
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
static void put_head(uint32_t tag, int64_t bytes)
{
    put(&(LsLinkHead){0x4c536d73, tag, bytes, 0}, sizeof(LsLinkHead));
}
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

/* ---- checks ---- */

enum { MOST = 70000, HEAD = sizeof(LsLinkHead), CHECK = 8 };
static const unsigned char secret[LS_SHA256] = "a connection's own";

static void renew(void)
{
    teardown();
    setup();
}

/* What a sealed link sends for n messages of so many bytes, tag 7 and on. */
static size_t record(int n, const int64_t *bytes, const unsigned char *data, unsigned char *to)
{
    size_t got = 0;
    renew();
    link_.rank = 1;
    link_.seal = ls_seal_key(secret);
    for (int k = 0; k < n; k++) {
        LsLinkMessage m = {
            .data = (unsigned char *)(uintptr_t)data, .bytes = bytes[k], .tag = 7 + (uint32_t)k};
        ls_link_send(&link_, &m);
        for (LsError e = {0}; !m.done; ls_link_move(&link_, &e))
            got += (size_t)read(far, to + got, 1000);
    }
    for (ssize_t more; (more = recv(far, to + got, 100000, MSG_DONTWAIT)) > 0; )
        got += (size_t)more;
    return got;
}

/* Plays it to the receiver, in pieces; returns how many messages arrived, *e says why not all. */
static int play(const unsigned char *of, size_t size, size_t piece, int n, const int64_t *bytes,
                unsigned char *to, LsError *e)
{
    LsLinkMessage m[3];
    int arrived = 0;
    renew();
    link_.rank = 0;
    link_.seal = ls_seal_key(secret);
    for (int k = 0; k < n; k++) {
        m[k] = (LsLinkMessage){.data = to + k * MOST, .bytes = bytes[k], .tag = 7 + (uint32_t)k};
        ck_assert(ls_link_receive(&link_, &m[k], e));
    }
    for (size_t at = 0; at < size && e->code == LS_EXIT_DONE; at += piece) {
        put(of + at, size - at < piece ? size - at : piece);
        for (int k = 0; k < 40 && e->code == LS_EXIT_DONE; k++)
            ls_link_move(&link_, e);
    }
    for (int k = 0; k < n; k++)
        arrived += m[k].done;
    return arrived;
}

static unsigned char data_[MOST], sent_[4 * MOST], got_[3 * MOST];

static void make_data(void)
{
    for (int i = 0; i < MOST; i++)
        data_[i] = (unsigned char)(i * 31 + (i >> 8));
}

START_TEST(sealed_messages_of_all_lengths_arrive_whole)
{
    static const size_t piece[] = {1, 13, 5000};
    make_data();
    for (int64_t n = 0; n < 130; n++) {
        const int64_t bytes[3] = {n, 3 * n, n % 3 == 0 ? 0 : 1};
        const size_t size = record(3, bytes, data_, sent_);
        ck_assert_int_eq((int64_t)size,
                         3 * HEAD + 4 * n + bytes[2] + CHECK * ((n > 0) * 2 + (bytes[2] > 0)));
        for (int k = 0; k < 3; k++) {
            LsError e = {0};
            memset(got_, 0, sizeof got_);
            ck_assert_msg(play(sent_, size, piece[k], 3, bytes, got_, &e) == 3, "%d bytes: %s",
                          (int)n, e.text);
            ck_assert(memcmp(got_, data_, (size_t)n) == 0
                      && memcmp(got_ + MOST, data_, (size_t)(3 * n)) == 0);
        }
    }
}
END_TEST

/* Every bit of head, bytes and check of short messages, some of a long one: no message arrives that
 * changed. */
START_TEST(any_bit_that_flips_on_the_way_is_seen)
{
    static const int64_t lengths[] = {0, 1, 6, 7, 8, 16, 27, 28, 29, 100, MOST};
    make_data();
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        const int64_t bytes[2] = {lengths[k], 0};
        const size_t size = record(2, bytes, data_, sent_), one = size - HEAD,
                     step = one > 1000 ? 7919 : 1;
        for (size_t bit = 0; bit < 8 * one; bit += step) {
            LsError e = {0};
            sent_[bit / 8] ^= (unsigned char)(1 << bit % 8);
            ck_assert_msg(play(sent_, size, 60000, 2, bytes, got_, &e) == 0, "%d bytes, bit %d",
                          (int)lengths[k], (int)bit);
            ck_assert_int_eq(e.code, LS_EXIT_RANK);
            ck_assert_msg(strstr(e.text, "what rank 1 sends is no message") != NULL
                          || strstr(e.text, "changed on its way to rank 0") != NULL, "%s", e.text);
            sent_[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    }
}
END_TEST

/* The same bytes in another order, twice, or under another key. */
START_TEST(a_message_counts_once_and_in_its_place)
{
    const int64_t bytes[3] = {40, 40, 40};
    unsigned char other[3 * 200];
    LsError e = {0};
    make_data();
    const size_t size = record(3, bytes, data_, sent_), one = size / 3;
    memcpy(other, sent_, one);
    memcpy(other + one, sent_, one);
    memcpy(other + 2 * one, sent_ + 2 * one, one);
    ck_assert_int_eq(play(other, size, 1000, 3, bytes, got_, &e), 1);
    ck_assert_str_eq(
        e.text, "a message of rank 1 changed on its way to rank 0: the check of its head is wrong");
    e = (LsError){0};
    memcpy(other, sent_, size);
    /* the first one's bytes and check behind the second head */
    memcpy(other + one + HEAD, sent_ + HEAD, one - HEAD);
    ck_assert_int_eq(play(other, size, 1000, 3, bytes, got_, &e), 1);
    ck_assert_str_eq(
        e.text, "a message of 40 bytes of rank 1 changed on its way to rank 0: its check is wrong");
    LsLinkMessage m;
    renew();
    link_.seal = ls_seal_key((const unsigned char[LS_SHA256]){"another connection's"});
    want(&m, 7, (char *)got_, 40);
    put(sent_, size);
    e = (LsError){0};
    ck_assert(!ls_link_move(&link_, &e) && e.code == LS_EXIT_RANK && !m.done);
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        a_message_that_half_came_before_it_was_named_has_one_receiver,
        nothing_is_read_that_nobody_waits_for,
        a_message_without_bytes_is_complete_with_its_head,
        what_is_no_message_or_ends_early_is_seen,
        sealed_messages_of_all_lengths_arrive_whole,
        any_bit_that_flips_on_the_way_is_seen,
        a_message_counts_once_and_in_its_place,
    };
    TCase *tc = tcase_create("comm_link");
    tcase_add_checked_fixture(tc, setup, teardown);
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("comm_link", tc);
}
