/* runtime/comm/peer_address.c -- see peer_address.h. */
#include "runtime/comm/peer_address.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_any(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
    return a->sa_family == AF_INET
           && ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr == htonl(INADDR_ANY);
}

/* Looks up one address, whose text is p->text. */
static bool look_up(LsPeer *p, int rank, LsError *e)
{
    char host[sizeof p->text];
    const struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    snprintf(host, sizeof host, "%s", p->text);
    char *colon = strrchr(host, ':'), *name = host;
    if (colon == NULL || colon == host || colon[1] == '\0')
        return ls_fail(e, LS_EXIT_USAGE, "--peers: '%s' of rank %d is not HOST:PORT", p->text,
                       rank);
    *colon = '\0';
    if (host[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        name++;
    }
    const int failed = getaddrinfo(name, colon + 1, &want, &p->found);
    if (failed != 0)
        return ls_fail(e, LS_EXIT_USAGE, "--peers: '%s' of rank %d: %s", p->text, rank,
                       gai_strerror(failed));
    p->next = p->found;
    for (const struct addrinfo *a = p->found; a != NULL; a = a->ai_next)
        if (is_any(a->ai_addr))
            return ls_fail(
                e, LS_EXIT_USAGE,
                "--peers: '%s' of rank %d stands for all addresses of a machine; name one", p->text,
                rank);
    return true;
}

bool ls_peers_read(LsPeer *p, int size, const char *list, LsError *e)
{
    for (int k = 0; k < size; k++) {
        const size_t n = strcspn(list, ",");
        if (n >= sizeof p[k].text)
            return ls_fail(e, LS_EXIT_USAGE, "--peers: the address of rank %d is too long", k);
        memcpy(p[k].text, list, n);
        p[k].text[n] = '\0';
        list += n + (list[n] == ',');
        for (int j = 0; j < k; j++)
            if (strcmp(p[j].text, p[k].text) == 0)
                return ls_fail(e, LS_EXIT_USAGE,
                               "--peers: ranks %d and %d have the same address %s", j, k,
                               p[k].text);
        if (!look_up(&p[k], k, e))
            return false;
    }
    return true;
}

void ls_peers_free(LsPeer *p, int size)
{
    for (int k = 0; k < size; k++)
        if (p[k].found != NULL)
            freeaddrinfo(p[k].found);
}

static int open_socket(const struct addrinfo *a)
{
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1;
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return fd;
}

static int listen_at(const struct addrinfo *a)
{
    enum { MOST_WAITING = 128 };
    const int fd = open_socket(a), yes = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, MOST_WAITING) == 0)
        return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* A name may have addresses of several kinds, of which this machine has some. */
int ls_peer_listen(const LsPeer *p, int rank, LsError *e)
{
    int why = 0;
    for (const struct addrinfo *a = p->found; a != NULL; a = a->ai_next) {
        const int fd = listen_at(a);
        if (fd >= 0)
            return fd;
        why = why == 0 || why == EADDRNOTAVAIL || why == EAFNOSUPPORT ? errno : why;
    }
    if (why == EADDRNOTAVAIL || why == EAFNOSUPPORT)
        ls_fail(e, LS_EXIT_USAGE,
                "--peers: %s of rank %d is no address of this machine; start rank %d where it is, "
                "or name the "
                "address here by which the others reach it",
                p->text, rank, rank);
    else
        ls_fail(e, LS_EXIT_RANK, "rank %d cannot listen at %s: %s%s", rank, p->text, strerror(why),
                why == EADDRINUSE
                    ? "; another process does, as a rank of an earlier run or the same rank twice"
                    : "");
    return -1;
}

int ls_peer_connect(LsPeer *p)
{
    const struct addrinfo *a = p->next;
    const int fd = open_socket(a);
    p->next = a->ai_next != NULL ? a->ai_next : p->found;
    if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

/* A socket that looks for a listener on its own machine may meet itself, if it was given the
 * listener's port. */
static bool is_itself(int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t n = sizeof here, m = sizeof there;
    return getsockname(fd, (struct sockaddr *)(void *)&here, &n) == 0
           && getpeername(fd, (struct sockaddr *)(void *)&there, &m) == 0 && n == m
           && memcmp(&here, &there, n) == 0;
}

bool ls_peer_connected(int fd)
{
    int failed = 0;
    socklen_t n = sizeof failed;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &n) == 0 && failed == 0 && !is_itself(fd);
}

bool ls_peer_say(int fd, const void *what, size_t n)
{
    return send(fd, what, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

int ls_peer_hear(int fd, void *to, size_t *at, size_t n)
{
    const ssize_t got = recv(fd, (char *)to + *at, n - *at, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (got <= 0)
        return -1;
    *at += (size_t)got;
    return *at == n;
}
