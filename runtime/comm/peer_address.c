/* runtime/comm/peer_address.c -- see peer_address.h. */
#include "runtime/comm/peer_address.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Looks up one address, whose text is p->text. */
static bool look_up(LsPeer *p, int rank, LsError *e)
{
    char host[sizeof p->text];
    const struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    snprintf(host, sizeof host, "%s", p->text);
    char *colon = strrchr(host, ':'), *name = host;
    if (colon == NULL || colon == host || colon[1] == '\0')
        return ls_fail(e, LS_EXIT_USAGE, "--peers: '%s' of rank %d is not HOST:PORT", p->text, rank);
    *colon = '\0';
    if (host[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        name++;
    }
    const int failed = getaddrinfo(name, colon + 1, &want, &p->found);
    if (failed != 0)
        return ls_fail(e, LS_EXIT_USAGE, "--peers: '%s' of rank %d: %s", p->text, rank, gai_strerror(failed));
    p->next = p->found;
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
                return ls_fail(e, LS_EXIT_USAGE, "--peers: ranks %d and %d have the same address %s", j, k, p[k].text);
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

/* The same port of all of this machine's addresses. */
static int bind_any(int fd, const struct addrinfo *a)
{
    struct sockaddr_storage any;
    memcpy(&any, a->ai_addr, a->ai_addrlen);
    if (a->ai_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)&any)->sin6_addr = in6addr_any;
    else
        ((struct sockaddr_in *)(void *)&any)->sin_addr.s_addr = htonl(INADDR_ANY);
    return bind(fd, (struct sockaddr *)(void *)&any, a->ai_addrlen);
}

int ls_peer_listen(const LsPeer *p, LsError *e)
{
    enum { MOST_WAITING = 128 };
    const int fd = open_socket(p->found), yes = 1;
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        int failed = bind(fd, p->found->ai_addr, p->found->ai_addrlen);
        if (failed != 0 && errno == EADDRNOTAVAIL)
            failed = bind_any(fd, p->found);
        if (failed == 0 && listen(fd, MOST_WAITING) == 0)
            return fd;
    }
    ls_fail(e, LS_EXIT_RANK, "cannot listen at %s: %s", p->text, strerror(errno));
    if (fd >= 0)
        close(fd);
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

/* A socket that looks for a listener on its own machine may meet itself, if it was given the listener's port. */
static bool is_itself(int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t n = sizeof here, m = sizeof there;
    return getsockname(fd, (struct sockaddr *)(void *)&here, &n) == 0
           && getpeername(fd, (struct sockaddr *)(void *)&there, &m) == 0 && n == m && memcmp(&here, &there, n) == 0;
}

bool ls_peer_connected(int fd)
{
    int failed = 0;
    socklen_t n = sizeof failed;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &n) == 0 && failed == 0 && !is_itself(fd);
}
