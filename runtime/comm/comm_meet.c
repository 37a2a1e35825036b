/* runtime/comm/comm_meet.c -- see comm_meet.h.
 *
 * Two connections join each pair of ranks: the lower one calls the higher one for their channel,
 * and is called for the way of messages. So both know soon that the other one is there. What they
 * say is in comm_greet.h. */
#include "runtime/comm/comm_meet.h"
#include "runtime/base/clock.h"
#include "runtime/comm/comm_door.h"
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

enum { STRIKES = 3, RETRY_MS = 100, TICK_MS = 250, PARTING_MS = 1000, NOTE_S = 5 };
static const int64_t MS = 1000000;      /* in ns */

/* A call to another rank. */
typedef enum { RESTS, RINGS, GREETS, ASKS, ANSWERED } CallState;
typedef struct Call {
    CallState state;
    int fd;
    size_t at;                  /* bytes of the welcome or the verdict that have come */
    int64_t due_ns;
    LsMet met;
    LsVerdict verdict;
    int strikes;                /* answers that no rank of the run gives */
    char differs[600];          /* why that rank was turned away, or turned this one away */
} Call;
typedef struct Meeting {
    int rank, size;
    const LsMeetWish *wish;
    LsHmac key;
    LsPeer *peer;
    Call *call;                 /* by rank */
    int *stream, *channel;      /* by rank; -1: not yet */
    LsSeal *stream_seal, *channel_seal;
    int64_t *heard_ns;          /* by rank: on its channel */
    LsDoor door;
    int64_t start_ns, pulsed_ns;
    bool noted;
    struct pollfd *at;
    LsError why; int culprit;
    bool leaves;                /* this rank is wrong, not the run: it joins nobody any more */
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

/* Ends this rank alone, unless others have joined it. */
static void leave(Meeting *m, const char *why)
{
    take_failure(m, -1, LS_EXIT_RANK, why);
    m->leaves = true;
}

static void hang_up(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void join(Meeting *m, int peer, bool channel, int fd, const LsMet *met)
{
    *(channel ? &m->channel[peer] : &m->stream[peer]) = fd;
    *(channel ? &m->channel_seal[peer] : &m->stream_seal[peer]) = ls_greet_seal(&m->key, met);
    if (channel)
        m->heard_ns[peer] = ls_now_ns();
}

static void retry_later(Call *c, int64_t now)
{
    hang_up(&c->fd);
    c->state = RESTS;
    c->due_ns = now + RETRY_MS * MS;
}

static void await(Call *c, CallState what, int64_t now)
{
    c->state = what;
    c->at = 0;
    c->due_ns = now + LS_ANSWER_S * 1000 * MS;
}

static void greet(Meeting *m, int k, int64_t now)
{
    Call *c = &m->call[k];
    if (!ls_peer_connected(c->fd) || !ls_greet(&c->met, &m->why)
        || !ls_peer_say(c->fd, &c->met.greeting, sizeof c->met.greeting))
        retry_later(c, now);
    else
        await(c, GREETS, now);
}

/* What was answered is not what a rank of this run says. It may have changed on the way: only the
 * third time counts. */
static void strike(Meeting *m, int k, bool garbage)
{
    Call *c = &m->call[k];
    char text[sizeof m->why.text];
    retry_later(c, ls_now_ns());
    if (++c->strikes < STRIKES)
        return;
    if (garbage) {
        fail(m, k, "what answers for rank %d at %s is no rank of a run", k, m->peer[k].text);
    } else if (k == 0) {
        snprintf(text, sizeof text, "what listens at %s for rank 0 %s", m->peer[k].text,
                 m->wish->token != NULL ? "has another token than this rank, or none"
                                        : "is of another program than this rank, or has a token");
        leave(m, text);
    }
}

/* Says who this rank is to whom has shown that it belongs to the run. */
static void ask(Meeting *m, int k, int64_t now)
{
    Call *c = &m->call[k];
    LsClaim claim = {.size = m->size, .rank = m->rank, .called = k, .channel = k > m->rank};
    snprintf(claim.run, sizeof claim.run, "%s", m->wish->run);
    ls_greet_prove(&m->key, &c->met, &claim);
    if (ls_peer_say(c->fd, &claim, sizeof claim))
        await(c, ASKS, now);
    else
        retry_later(c, now);
}

static void hear_welcome(Meeting *m, int k, int64_t now)
{
    Call *c = &m->call[k];
    const int got = ls_peer_hear(c->fd, &c->met.welcome, &c->at, sizeof c->met.welcome);
    if (got < 0 && c->at == 0)
        retry_later(c, now);           /* something in between took the connection, and found
                                        * nobody */
    else if (got < 0 || !ls_greet_is_welcome(&c->met.welcome, c->at))
        strike(m, k, true);
    else if (got > 0 && !ls_greet_knows(&m->key, &c->met))
        strike(m, k, false);
    else if (got > 0)
        ask(m, k, now);
}

/* Ranks k and this one do not mean the same run; rank 0 is right. */
static void take_difference(Meeting *m, int k, const char *why)
{
    Call *c = &m->call[k];
    if (k == 0) {
        leave(m, why);
    } else if (m->rank == 0 && strcmp(c->differs, why) != 0) {
        fprintf(stderr, "note: rank %d was turned away, and rank 0 waits for another one: %s\n", k,
                why);
    }
    snprintf(c->differs, sizeof c->differs, "%s", why);
}

static void hear_verdict(Meeting *m, int k, int64_t now)
{
    Call *c = &m->call[k];
    const int got = ls_peer_hear(c->fd, &c->verdict, &c->at, sizeof c->verdict);
    if (got == 0)
        return;
    if (got < 0 && c->at == 0) {
        retry_later(c, now);
    } else if (got < 0 || !ls_greet_judged(&m->key, &c->met, &c->verdict)) {
        strike(m, k, true);
    } else if (c->verdict.kind == LS_DOUBLE) {
        leave(m, c->verdict.why);
    } else if (c->verdict.kind != LS_TAKEN) {
        retry_later(c, now);
        take_difference(m, k, c->verdict.why);
    } else {
        join(m, k, k > m->rank, c->fd, &c->met);
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
            retry_later(c, now);
    } else if (c->state == RINGS && ready) {
        greet(m, k, now);
    } else if (c->state == GREETS && ready) {
        hear_welcome(m, k, now);
    } else if (c->state == ASKS && ready) {
        hear_verdict(m, k, now);
    } else if ((c->state == GREETS || c->state == ASKS) && now > c->due_ns) {
        fail(m, k, "rank %d (%s) says nothing: it hangs, or is no rank", k, m->peer[k].text);
    }
}

/* What a caller must agree in, who has the key; why: what the one that is wrong then prints. */
static LsVerdictKind judge(const Meeting *m, const LsClaim *h, char *why, size_t n)
{
    const int *joined = h->channel ? m->channel : m->stream;
    why[0] = '\0';
    if (h->size != m->size)
        snprintf(why, n, "rank %d is of %d ranks, and rank %d of %d", h->rank, h->size, m->rank,
                 m->size);
    else if (h->called != m->rank || h->rank < 0 || h->rank >= m->size || h->rank == m->rank)
        snprintf(why, n, "rank %d takes rank %d for rank %d: their --peers differ", h->rank,
                 m->rank, h->called);
    else if (strncmp(h->run, m->wish->run, sizeof h->run - 1) != 0)
        snprintf(why, n, "rank %d and rank %d do not run the same: %.250s; and %.250s", h->rank,
                 m->rank, h->run, m->wish->run);
    if (why[0] != '\0')
        return LS_DIFFERS;
    if (joined[h->rank] < 0 && (h->channel != 0) == (h->rank < m->rank))
        return LS_TAKEN;
    snprintf(why, n, "two processes say that they are rank %d", h->rank);
    return LS_DOUBLE;
}

/* Takes a guest who has said all and has the key, or turns it away. */
static void admit_peer(Meeting *m, LsGuest *g)
{
    const LsClaim *h = &g->claim;
    LsVerdict v = {.kind = LS_TAKEN};
    v.kind = (int32_t)judge(m, h, v.why, sizeof v.why);
    ls_greet_judge(&m->key, &g->met, &v);
    const bool said = ls_peer_say(g->fd, &v, sizeof v);
    if (v.kind == LS_TAKEN && said) {
        join(m, h->rank, h->channel != 0, g->fd, &g->met);
        g->fd = -1;
        return;
    }
    if (v.kind == LS_DIFFERS && h->rank >= 0 && h->rank < m->size && h->rank != m->rank)
        take_difference(m, h->rank, v.why);
    hang_up(&g->fd);
}

static LsChannel channel_of(const Meeting *m, int k)
{
    return (LsChannel){.fd = m->channel[k], .seal = m->channel_seal[k]};
}

/* News on a channel that is there already: a failure. */
static void hear_channel(Meeting *m, int k)
{
    LsFrame f;
    const LsChannel c = channel_of(m, k);
    const ssize_t got = recv(c.fd, &f, sizeof f, MSG_DONTWAIT | MSG_PEEK);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        fail(m, k, "rank %d died while ranks met", k);
        hang_up(&m->channel[k]);
    } else if (got == (ssize_t)sizeof f && !ls_channel_trusts(&c, &f)) {
        m->heard_ns[k] = INT64_MAX;
        fail(m, -1, "a sign of life of rank %d changed on its way to rank %d: its check is wrong",
             k, m->rank);
    } else if (got == (ssize_t)sizeof f && f.kind != LS_FRAME_PULSE) {
        m->heard_ns[k] = INT64_MAX;         /* it failed, or has met all and needs them no more: the
                                             * watch reads that */
        if (f.kind == LS_FRAME_FAILED)
            take_failure(m, f.subject, (LsExit)f.code, f.text);
    } else if (got == (ssize_t)sizeof f && recv(c.fd, &f, sizeof f, MSG_DONTWAIT) == got) {
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

static void miss(Meeting *m, int k)
{
    const char *differs = m->call[k].differs;
    if (differs[0] != '\0')
        fail(m, k, "rank %d (%s) did not come within %d s; one was turned away: %.400s", k,
             m->peer[k].text, LS_MEET_S, differs);
    else if (m->door.unproved > 0)
        fail(m, k,
             "rank %d (%s) did not come within %d s; callers were turned away that have another %s "
             "(%d)",
             k, m->peer[k].text, LS_MEET_S,
             m->wish->token != NULL ? "token or none" : "program or a token", m->door.unproved);
    else
        fail(m, k, "rank %d (%s) did not come within %d s", k, m->peer[k].text, LS_MEET_S);
}

static void tick(Meeting *m, int64_t now)
{
    const int k = missing(m);
    if (now - m->start_ns > LS_MEET_S * 1000 * MS && k >= 0)
        miss(m, k);
    if (m->rank == 0 && !m->noted && now - m->start_ns > NOTE_S * 1000 * MS && k >= 0) {
        fprintf(stderr, "note: waiting for rank %d at %s\n", k, m->peer[k].text);
        m->noted = true;
    }
    for (int j = 0; j < m->size; j++)
        if (m->channel[j] >= 0 && now - m->heard_ns[j] > LS_WATCH_SILENCE_MS * MS)
            fail(m, j, "rank %d (%s) gave no sign of life for %d s", j, m->peer[j].text,
                 LS_WATCH_SILENCE_MS / 1000);
    if (now - m->pulsed_ns < 2 * TICK_MS * MS)
        return;
    m->pulsed_ns = now;
    for (int j = 0; j < m->size; j++) {
        LsChannel c = channel_of(m, j);
        ls_channel_send(&c, LS_FRAME_PULSE, m->rank, NULL);
    }
}

/* One round: whatever has come, for every call, guest and channel. */
static void go_round(Meeting *m)
{
    struct pollfd *call = m->at, *channel = call + m->size, *guest = channel + m->size;
    for (int k = 0; k < m->size; k++) {
        const Call *c = &m->call[k];
        call[k] = (struct pollfd){.fd = k == m->rank ? -1 : c->fd,
                                  .events = c->state == RINGS ? POLLOUT : POLLIN};
        channel[k] = (struct pollfd){.fd = m->heard_ns[k] == INT64_MAX ? -1 : m->channel[k],
                                     .events = POLLIN};
    }
    ls_door_fill(&m->door, guest);
    poll(m->at, (nfds_t)(2 * m->size + LS_GUESTS + 1), RETRY_MS);
    const int64_t now = ls_now_ns();
    for (int k = 0; k < LS_GUESTS; k++)
        if (ls_door_hear(&m->door, k, guest[k].revents != 0, now))
            admit_peer(m, &m->door.guest[k]);
    ls_door_let_in(&m->door, now);
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
    ls_door_close(&m->door);
    if (m->peer != NULL)
        ls_peers_free(m->peer, m->size);
    free(m->peer);
    free(m->call);
    free(m->stream);
    free(m->channel);
    free(m->stream_seal);
    free(m->channel_seal);
    free(m->heard_ns);
    free(m->at);
    free(m);
}

static Meeting *new_meeting(const LsMeetWish *w)
{
    const size_t n = (size_t)w->size;
    Meeting *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    *m = (Meeting){.rank = w->rank,
                   .size = w->size,
                   .wish = w,
                   .key = ls_greet_key(w->token, w->program),
                   .culprit = -1,
                   .start_ns = ls_now_ns(),
                   .peer = calloc(n, sizeof *m->peer),
                   .call = calloc(n, sizeof *m->call),
                   .stream = calloc(n, sizeof *m->stream),
                   .channel = calloc(n, sizeof *m->channel),
                   .stream_seal = calloc(n, sizeof *m->stream_seal),
                   .channel_seal = calloc(n, sizeof *m->channel_seal),
                   .heard_ns = calloc(n, sizeof *m->heard_ns),
                   .at = calloc(2 * n + LS_GUESTS + 1, sizeof *m->at)};
    ls_door_init(&m->door, &m->key);
    if (m->peer == NULL || m->call == NULL || m->stream == NULL || m->channel == NULL
        || m->stream_seal == NULL || m->channel_seal == NULL || m->heard_ns == NULL
        || m->at == NULL) {
        free(m->call);          /* whose descriptors are not set */
        m->call = NULL;
        free_meeting(m);
        return NULL;
    }
    for (int k = 0; k < w->size; k++)
        m->call[k].fd = m->stream[k] = m->channel[k] = -1;
    return m;
}

/* After a failure it goes on for a moment: those who are joined then learn of it, and agree on who
 * prints it. */
static bool is_done(const Meeting *m)
{
    return m->leaves || missing(m) < 0
           || (m->why.code != LS_EXIT_DONE && ls_now_ns() - m->failed_ns > PARTING_MS * MS);
}

static bool give_up(const Meeting *m, LsComm *c, bool *silent, LsError *e)
{
    *silent = !ls_comm_streams_fail(c, m->culprit, &m->why);
    c->engine->close(c);
    return ls_fail(e, m->why.code, "%s", m->why.text);
}

bool ls_comm_meet(const LsMeetWish *w, LsComm **c, bool *silent, LsError *e)
{
    Meeting *m = new_meeting(w);
    *c = NULL;
    *silent = false;
    if (m == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    if (!ls_peers_read(m->peer, w->size, w->peers, e)
        || (m->door.listener = ls_peer_listen(&m->peer[w->rank], w->rank, e)) < 0) {
        free_meeting(m);
        return false;
    }
    while (!is_done(m))
        go_round(m);
    const LsStreams joined = {.rank = w->rank,
                              .size = w->size,
                              .stream = m->stream,
                              .channel = m->channel,
                              .stream_seal = m->stream_seal,
                              .channel_seal = m->channel_seal};
    *c = ls_comm_streams("sockets", &joined, e);
    bool ok = *c != NULL;
    if (ok && m->why.code != LS_EXIT_DONE) {
        ok = give_up(m, *c, silent, e);
        *c = NULL;
    }
    free_meeting(m);
    return ok;
}
