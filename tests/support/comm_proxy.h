/* tests/support/comm_proxy.h -- a process between two ranks that forwards what they send, or does
 * harm to it. */
#ifndef LS_TESTS_SUPPORT_COMM_PROXY_H
#define LS_TESTS_SUPPORT_COMM_PROXY_H

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* CHOP: few bytes at a time; MUTE: nothing goes on, and nothing says so; RESET: all connections
 * break; SPOIL: bytes of messages change; SPLIT: the ways of messages break, and signs of life go
 * on; FLIP, FLIP_LIFE: one bit of a message, of a sign of life changes. */
typedef enum {
    PROXY_PASS,
    PROXY_CHOP,
    PROXY_MUTE,
    PROXY_RESET,
    PROXY_SPOIL,
    PROXY_SPLIT,
    PROXY_FLIP,
    PROXY_FLIP_LIFE
} ProxyHarm;

/* Loopback addresses of this test alone. */
static inline struct sockaddr_in proxy_address(int k)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(20001 + k))};
    const unsigned pid = (unsigned)getpgrp();
    a.sin_addr.s_addr = htonl(0x7f000000u | ((pid >> 8) & 0x7f) << 16 | (pid & 0xff) << 8 | 1);
    return a;
}

static inline void proxy_text(char *to, size_t n, int k)
{
    const struct sockaddr_in a = proxy_address(k);
    snprintf(to, n, "%s:%d", inet_ntoa(a.sin_addr), ntohs(a.sin_port));
}

static inline int proxy_listen(int k)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    struct sockaddr_in a = proxy_address(k);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    ck_assert_msg(bind(fd, (struct sockaddr *)(void *)&a, sizeof a) == 0 && listen(fd, 16) == 0,
                  "%s", strerror(errno));
    return fd;
}

static inline int proxy_call(int k)
{
    struct sockaddr_in a = proxy_address(k);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    while (connect(fd, (struct sockaddr *)(void *)&a, sizeof a) != 0)
        usleep(1000);
    return fd;
}

enum { PROXY_MOST = 64 };
typedef struct Proxy {
    int n, fd[PROXY_MOST];      /* fd[i] and fd[i ^ 1] are joined */
    bool messages[PROXY_MOST];  /* a way of messages, not a channel: the caller's hello says so */
    long passed[PROXY_MOST];
} Proxy;

static inline void proxy_break(Proxy *p, int i)
{
    const struct linger hard = {1, 0};
    for (int j = i & ~1; j <= (i | 1); j++) {
        if (p->fd[j] >= 0) {
            setsockopt(p->fd[j], SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
            close(p->fd[j]);
        }
        p->fd[j] = -1;
    }
}

static inline void proxy_pass(Proxy *p, int i, ProxyHarm harm)
{
    char buf[65536];
    const ssize_t got = read(
        p->fd[i], buf, harm == PROXY_CHOP ? 1 + (size_t)(p->passed[i] * 7919) % 5000 : sizeof buf);
    if (got <= 0) {
        if (p->fd[i ^ 1] >= 0)
            shutdown(p->fd[i ^ 1], SHUT_WR);
        close(p->fd[i]);
        p->fd[i] = -1;
        return;
    }
    enum { GREETING = 40, CHANNEL_AT = 12 };      /* the claim follows the greeting */
    if (p->passed[i] == GREETING && (i & 1) == 0 && got > CHANNEL_AT)
        p->messages[i] = p->messages[i ^ 1] = buf[CHANNEL_AT] == 0;
    const bool greets = p->passed[i] < GREETING + 1000;
    if ((harm == PROXY_FLIP && p->messages[i] && !greets)
        || (harm == PROXY_FLIP_LIFE && !p->messages[i] && !greets))
        buf[p->passed[i] * 7919 % got] ^= (char)(1 << p->passed[i] / 8 % 8);
    if (harm == PROXY_SPOIL && p->messages[i])
        memset(buf, 0x55, (size_t)got);
    p->passed[i] += got;
    for (ssize_t at = 0; at < got && p->fd[i ^ 1] >= 0; ) {
        const ssize_t put = send(p->fd[i ^ 1], buf + at, (size_t)(got - at), MSG_NOSIGNAL);
        if (put <= 0)
            break;
        at += put;
    }
}

static inline void proxy_run(int listener, int target, const atomic_int *harm)
{
    Proxy p = {0};
    for (;;) {
        struct pollfd at[PROXY_MOST + 1];
        const ProxyHarm now = (ProxyHarm)atomic_load(harm);
        for (int i = 0; i < p.n; i++) {
            if (now == PROXY_RESET || (now == PROXY_SPLIT && p.messages[i]))
                proxy_break(&p, i);
            at[i] = (struct pollfd){.fd = p.fd[i], .events = POLLIN};
        }
        at[p.n] = (struct pollfd){.fd = listener, .events = POLLIN};
        if (now == PROXY_MUTE) {
            usleep(5000);
            continue;
        }
        poll(at, (nfds_t)p.n + 1, 5);
        if ((ProxyHarm)atomic_load(harm) != now)
            continue;
        for (int i = 0; i < p.n; i++)
            if (at[i].revents != 0)
                proxy_pass(&p, i, now);
        if (at[p.n].revents != 0 && p.n + 2 <= PROXY_MOST) {
            p.fd[p.n] = accept(listener, NULL, NULL);
            struct sockaddr_in to = proxy_address(target);
            p.fd[p.n + 1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            p.n += 2;
            if (connect(p.fd[p.n - 1], (struct sockaddr *)(void *)&to, sizeof to) != 0)
                proxy_break(&p, p.n - 2);
        }
    }
}

/* Starts a proxy at address `at` for the listener at address `target`. */
static inline pid_t proxy_start(int at, int target, const atomic_int *harm)
{
    const int listener = proxy_listen(at);
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        proxy_run(listener, target, harm);
    }
    close(listener);
    return pid;
}

#endif
