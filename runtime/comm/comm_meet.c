/* runtime/comm/comm_meet.c -- see comm_meet.h.
 *
 * Two connections join each pair of ranks: the lower one calls the higher one for their channel, and is called for the way
 * of messages. So both know soon that the other one is there. A caller says who it is and what it runs; whoever is called
 * compares, and answers. */
#include "runtime/comm/comm_meet.h"
#include "runtime/base/clock.h"
#include "runtime/comm/comm_stream.h"
#include "runtime/comm/comm_watch.h"
#include "runtime/comm/peer_address.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { VERSION = 1, GUESTS = 64, RETRY_MS = 100, TICK_MS = 250, PARTING_MS = 1000, NOTE_S = 5 };
static const int64_t MS = 1000000;      /* in ns */
static const char hello_mark[8] = "LSRANK?", answer_mark[8] = "LSRANK!";

typedef struct Hello {
    char mark[8];
    int32_t version, size, rank, called;        /* called: the rank that the caller means */
    int32_t channel;            /* 1: for the channel; 0: for messages */
    char run[700];
} Hello;
typedef struct Answer { char mark[8]; int32_t taken; char why[600]; } Answer;

/* A call to another rank. */
typedef enum { RESTS, RINGS, ASKS, ANSWERED } CallState;
typedef struct Call { CallState state; int fd; size_t at; int64_t due_ns; Answer answer; } Call;
/* Somebody who called, and has not said all yet. */
typedef struct Guest { int fd; size_t at; int64_t due_ns; Hello hello; } Guest;

typedef struct Meeting {
    int rank, size;
    const char *run;
    LsPeer *peer;
    Call *call;                 /* by rank */
    int *stream, *channel;      /* by rank; -1: not yet */
    int64_t *heard_ns;          /* by rank: on its channel */
    Guest guest[GUESTS];
    int listener;
    int64_t start_ns, pulsed_ns;
    bool noted;
    struct pollfd *at;
    LsError why; int culprit;
    int64_t failed_ns;
} Meeting;

static void take_failure(Meeting *m, int culprit, LsExit code, const char *text)
{
    if (m->why.code != LS_EXIT_DONE)
        return;
    ls_fail(&m->why, code, "%s", text);
    m->culprit = culprit;
    m->failed_ns = ls_now_ns();
}

__attribute__((format(printf, 3, 4)))
static void fail(Meeting *m, int culprit, const char *fmt, ...)
{
    char text[sizeof m->why.text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    take_failure(m, culprit, LS_EXIT_RANK, text);
}

static void hang_up(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void join(Meeting *m, int peer, bool channel, int fd)
{
    *(channel ? &m->channel[peer] : &m->stream[peer]) = fd;
    if (channel)
        m->heard_ns[peer] = ls_now_ns();
}

/* Sends something short on a new connection, whose buffers are empty. */
static bool say(int fd, const void *what, size_t n) { return send(fd, what, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n; }

/* Reads on; 1: all has come, 0: not yet, -1: nothing more will. */
static int listen_on(int fd, void *to, size_t *at, size_t n)
{
    const ssize_t got = recv(fd, (char *)to + *at, n - *at, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (got <= 0)
        return -1;
    *at += (size_t)got;
    return *at == n;
}

static void rest(Call *c, int64_t now)
{
    hang_up(&c->fd);
    c->state = RESTS;
    c->due_ns = now + RETRY_MS * MS;
}

static void ask(Meeting *m, int k, int64_t now)
{
    Call *c = &m->call[k];
    Hello h = {.version = VERSION, .size = m->size, .rank = m->rank, .called = k, .channel = k > m->rank};
    memcpy(h.mark, hello_mark, sizeof h.mark);
    snprintf(h.run, sizeof h.run, "%s", m->run);
    if (!ls_peer_connected(c->fd) || !say(c->fd, &h, sizeof h)) {
        rest(c, now);
        return;
    }
    c->state = ASKS;
    c->at = 0;
    c->due_ns = now + LS_ANSWER_S * 1000 * MS;
}

static void hear_answer(Meeting *m, int k)
{
    Call *c = &m->call[k];
    const int got = listen_on(c->fd, &c->answer, &c->at, sizeof c->answer);
    if (got < 0 && c->at == 0)
        rest(c, ls_now_ns());       /* something in between took the connection, and found nobody */
    if (got == 0 || c->state == RESTS)
        return;
    c->answer.why[sizeof c->answer.why - 1] = '\0';
    if (got < 0 || memcmp(c->answer.mark, answer_mark, sizeof answer_mark) != 0) {
        fail(m, k, "what answers for rank %d at %s is no rank of a run", k, m->peer[k].text);
    } else if (!c->answer.taken) {
        fail(m, k, "%s", c->answer.why);
    } else {
        join(m, k, k > m->rank, c->fd);
        c->fd = -1;
        c->state = ANSWERED;
    }
}

static void go_on_calling(Meeting *m, int k, bool ready, int64_t now)
{
    Call *c = &m->call[k];
    if (c->state == RESTS && now >= c->due_ns) {
        c->fd = ls_peer_connect(&m->peer[k]);
        c->state = RINGS;
        if (c->fd < 0)
            rest(c, now);
    } else if (c->state == RINGS && ready) {
        ask(m, k, now);
    } else if (c->state == ASKS && ready) {
        hear_answer(m, k);
    } else if (c->state == ASKS && now > c->due_ns) {
        fail(m, k, "rank %d (%s) says nothing: it hangs, or is no rank", k, m->peer[k].text);
    }
}

/* What a caller must agree in; why: what the called rank and the caller then print. */
static bool agrees(Meeting *m, const Hello *h, char *why, size_t n)
{
    const int *joined = h->channel ? m->channel : m->stream;
    why[0] = '\0';
    if (h->version != VERSION)
        snprintf(why, n, "rank %d comes from another version of lowerset than rank %d", h->rank, m->rank);
    else if (h->size != m->size)
        snprintf(why, n, "rank %d is of %d ranks, and rank %d of %d", h->rank, h->size, m->rank, m->size);
    else if (h->called != m->rank || h->rank < 0 || h->rank >= m->size || h->rank == m->rank)
        snprintf(why, n, "rank %d takes rank %d for rank %d: their --peers differ", h->rank, m->rank, h->called);
    else if (strncmp(h->run, m->run, sizeof h->run - 1) != 0)
        snprintf(why, n, "rank %d and rank %d do not run the same: %.250s; and %.250s", h->rank, m->rank, h->run, m->run);
    else if (joined[h->rank] >= 0 || (h->channel != 0) != (h->rank < m->rank))
        snprintf(why, n, "two processes say that they are rank %d", h->rank);
    return why[0] == '\0';
}

/* Takes a guest who has said all, or turns it away. */
static void take_guest(Meeting *m, Guest *g)
{
    Answer a = {.taken = 1};
    g->hello.run[sizeof g->hello.run - 1] = '\0';
    if (memcmp(g->hello.mark, hello_mark, sizeof hello_mark) != 0) {
        hang_up(&g->fd);
        return;
    }
    memcpy(a.mark, answer_mark, sizeof a.mark);
    a.taken = agrees(m, &g->hello, a.why, sizeof a.why);
    const bool said = say(g->fd, &a, sizeof a);
    if (a.taken && said) {
        join(m, g->hello.rank, g->hello.channel, g->fd);
        g->fd = -1;
        return;
    }
    if (!a.taken)
        fail(m, g->hello.rank, "%s", a.why);
    hang_up(&g->fd);
}

static void hear_guest(Meeting *m, Guest *g, bool ready, int64_t now)
{
    const int got = g->fd >= 0 && ready ? listen_on(g->fd, &g->hello, &g->at, sizeof g->hello) : 0;
    if (got > 0)
        take_guest(m, g);
    else if (got < 0 || (g->fd >= 0 && now > g->due_ns)
             || (g->at >= sizeof hello_mark && memcmp(g->hello.mark, hello_mark, sizeof hello_mark) != 0))
        hang_up(&g->fd);
}

static void let_in(Meeting *m, int64_t now)
{
    for (int fd; (fd = accept4(m->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0; ) {
        Guest *place = &m->guest[0];
        for (int k = 0; k < GUESTS && place->fd >= 0; k++)
            if (m->guest[k].fd < 0 || m->guest[k].due_ns < place->due_ns)
                place = &m->guest[k];
        hang_up(&place->fd);        /* whoever was silent for longest, if there is no room */
        *place = (Guest){.fd = fd, .due_ns = now + LS_ANSWER_S * 1000 * MS};
    }
}

/* News on a channel that is there already: a failure. */
static void hear_channel(Meeting *m, int k)
{
    LsFrame f;
    const ssize_t got = recv(m->channel[k], &f, sizeof f, MSG_DONTWAIT | MSG_PEEK);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        fail(m, k, "rank %d died while ranks met", k);
        hang_up(&m->channel[k]);
    } else if (got == (ssize_t)sizeof f && f.kind != LS_FRAME_PULSE) {
        m->heard_ns[k] = INT64_MAX;         /* it failed, or has met all and needs them no more: the watch reads that */
        f.text[sizeof f.text - 1] = '\0';
        if (f.kind == LS_FRAME_FAILED)
            take_failure(m, f.subject, (LsExit)f.code, f.text);
    } else if (got == (ssize_t)sizeof f && recv(m->channel[k], &f, sizeof f, MSG_DONTWAIT) == got) {
        m->heard_ns[k] = ls_now_ns();
    }
}

/* The first rank that is not joined; after a failure without the one that failed. -1: none. */
static int missing(const Meeting *m)
{
    for (int k = 0; k < m->size; k++)
        if (k != m->rank && k != m->culprit && (m->stream[k] < 0 || m->channel[k] < 0))
            return k;
    return -1;
}

static void tick(Meeting *m, int64_t now)
{
    const int k = missing(m);
    if (now - m->start_ns > LS_MEET_S * 1000 * MS && k >= 0)
        fail(m, k, "rank %d (%s) did not come within %d s", k, m->peer[k].text, LS_MEET_S);
    if (m->rank == 0 && !m->noted && now - m->start_ns > NOTE_S * 1000 * MS && k >= 0) {
        fprintf(stderr, "note: waiting for rank %d at %s\n", k, m->peer[k].text);
        m->noted = true;
    }
    for (int j = 0; j < m->size; j++)
        if (m->channel[j] >= 0 && now - m->heard_ns[j] > LS_WATCH_SILENCE_MS * MS)
            fail(m, j, "rank %d (%s) gave no sign of life for %d s", j, m->peer[j].text, LS_WATCH_SILENCE_MS / 1000);
    if (now - m->pulsed_ns < 2 * TICK_MS * MS)
        return;
    m->pulsed_ns = now;
    for (int j = 0; j < m->size; j++) {
        LsChannel c = {.fd = m->channel[j]};
        ls_channel_send(&c, LS_FRAME_PULSE, m->rank, NULL);
    }
}

/* One round: whatever has come, for every call, guest and channel. */
static void go_round(Meeting *m)
{
    struct pollfd *call = m->at, *channel = call + m->size, *guest = channel + m->size, *door = guest + GUESTS;
    for (int k = 0; k < m->size; k++) {
        const Call *c = &m->call[k];
        call[k] = (struct pollfd){.fd = k == m->rank ? -1 : c->fd, .events = c->state == RINGS ? POLLOUT : POLLIN};
        channel[k] = (struct pollfd){.fd = m->heard_ns[k] == INT64_MAX ? -1 : m->channel[k], .events = POLLIN};
    }
    for (int k = 0; k < GUESTS; k++)
        guest[k] = (struct pollfd){.fd = m->guest[k].fd, .events = POLLIN};
    *door = (struct pollfd){.fd = m->listener, .events = POLLIN};
    poll(m->at, (nfds_t)(2 * m->size + GUESTS + 1), RETRY_MS);
    const int64_t now = ls_now_ns();
    for (int k = 0; k < GUESTS; k++)
        hear_guest(m, &m->guest[k], guest[k].revents != 0, now);
    if (door->revents != 0)
        let_in(m, now);
    for (int k = 0; k < m->size; k++) {
        if (channel[k].revents != 0)
            hear_channel(m, k);
        if (k != m->rank)
            go_on_calling(m, k, call[k].revents != 0, now);
    }
    tick(m, now);
}

static void free_meeting(Meeting *m)
{
    for (int k = 0; k < m->size && m->call != NULL; k++)
        hang_up(&m->call[k].fd);
    for (int k = 0; k < GUESTS; k++)
        hang_up(&m->guest[k].fd);
    hang_up(&m->listener);
    if (m->peer != NULL)
        ls_peers_free(m->peer, m->size);
    free(m->peer);
    free(m->call);
    free(m->stream);
    free(m->channel);
    free(m->heard_ns);
    free(m->at);
    free(m);
}

static Meeting *new_meeting(int rank, int size, const char *run)
{
    const size_t n = (size_t)size;
    Meeting *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    *m = (Meeting){.rank = rank, .size = size, .run = run, .listener = -1, .culprit = -1, .start_ns = ls_now_ns(),
                   .peer = calloc(n, sizeof *m->peer), .call = calloc(n, sizeof *m->call),
                   .stream = calloc(n, sizeof *m->stream), .channel = calloc(n, sizeof *m->channel),
                   .heard_ns = calloc(n, sizeof *m->heard_ns), .at = calloc(2 * n + GUESTS + 1, sizeof *m->at)};
    for (int k = 0; k < GUESTS; k++)
        m->guest[k].fd = -1;
    if (m->peer == NULL || m->call == NULL || m->stream == NULL || m->channel == NULL || m->heard_ns == NULL
        || m->at == NULL) {
        free(m->call);          /* whose descriptors are not set */
        m->call = NULL;
        free_meeting(m);
        return NULL;
    }
    for (int k = 0; k < size; k++)
        m->call[k].fd = m->stream[k] = m->channel[k] = -1;
    return m;
}

/* After a failure it goes on for a moment: those who are joined then learn of it, and agree on who prints it. */
static bool is_done(const Meeting *m)
{
    return missing(m) < 0 || (m->why.code != LS_EXIT_DONE && ls_now_ns() - m->failed_ns > PARTING_MS * MS);
}

static bool give_up(const Meeting *m, LsComm *c, bool *silent, LsError *e)
{
    *silent = !ls_comm_streams_fail(c, m->culprit, &m->why);
    c->engine->close(c);
    return ls_fail(e, m->why.code, "%s", m->why.text);
}

bool ls_comm_meet(const char *peers, int rank, int size, const char *run, LsComm **c, bool *silent, LsError *e)
{
    Meeting *m = new_meeting(rank, size, run);
    *c = NULL;
    *silent = false;
    if (m == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    if (!ls_peers_read(m->peer, size, peers, e) || (m->listener = ls_peer_listen(&m->peer[rank], e)) < 0) {
        free_meeting(m);
        return false;
    }
    while (!is_done(m))
        go_round(m);
    const LsStreams joined = {rank, size, m->stream, false, m->channel};
    *c = ls_comm_streams("sockets", &joined, e);
    bool ok = *c != NULL;
    if (ok && m->why.code != LS_EXIT_DONE) {
        ok = give_up(m, *c, silent, e);
        *c = NULL;
    }
    free_meeting(m);
    return ok;
}
