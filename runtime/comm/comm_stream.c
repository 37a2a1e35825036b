/* runtime/comm/comm_stream.c -- see comm_stream.h. */
#include "runtime/comm/comm_stream.h"
#include "runtime/comm/comm_link.h"
#include "runtime/comm/comm_records.h"
#include "runtime/comm/comm_watch.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct Streams {
    LsComm comm;
    LsCommEngine engine;
    LsWatch *watch;
    LsLink *link;               /* by rank */
    LsRecords messages;
    int64_t begun;              /* messages nobody has waited for */
} Streams;

static Streams *streams_of(LsComm *c) { return (Streams *)(void *)c; }

static int fill(void *of, struct pollfd *at)
{
    const Streams *s = of;
    int n = 0;
    for (int k = 0; k < s->comm.size; k++) {
        const LsLink *l = &s->link[k];
        const short events = ls_link_events(l);
        if (l->in != l->out && (events & POLLOUT) != 0)
            at[n++] = (struct pollfd){.fd = l->out, .events = POLLOUT};
        if (events != 0 && (l->in == l->out || (events & POLLIN) != 0))
            at[n++] = (struct pollfd){.fd = l->in, .events = l->in == l->out ? events : POLLIN};
    }
    return n;
}

static void move(void *of)
{
    Streams *s = of;
    for (int k = 0; k < s->comm.size; k++) {
        LsLink *l = &s->link[k];
        LsError e = {0};
        if (ls_link_events(l) != 0 && !ls_link_move(l, &e))
            ls_watch_fail(s->watch, -1, e.code, "%s", e.text);
        if (l->closed && ls_link_waits(l))
            ls_watch_suspect(s->watch, k, l->broken);
    }
}

static bool begin(LsComm *c, int peer, bool sends, LsLinkMessage what, LsTransfer *x, LsError *e)
{
    Streams *s = streams_of(c);
    LsError why = {0};
    assert(peer >= 0 && peer < c->size && what.bytes >= 0);
    LsLinkMessage *m = ls_records_take(&s->messages, e);
    if (m == NULL)
        return false;
    s->begun++;
    *m = what;
    *x = (LsTransfer){m, peer, what.bytes};
    ls_watch_lock(s->watch);
    bool ok = ls_watch_fine(s->watch, e);
    if (ok && sends)
        ls_link_send(&s->link[peer], m);
    if (ok && !sends && !ls_link_receive(&s->link[peer], m, &why)) {
        ls_watch_fail(s->watch, -1, why.code, "%s", why.text);
        ok = ls_watch_fine(s->watch, e);
    }
    if (ok && !m->done)
        ls_watch_kick(s->watch);
    ls_watch_unlock(s->watch);
    return ok;
}

static bool send_bytes(LsComm *c, int peer, uint32_t tag, const void *data, int64_t bytes,
                       LsTransfer *x, LsError *e)
{
    return begin(
        c, peer, true,
        (LsLinkMessage){.data = (unsigned char *)(uintptr_t)data, .bytes = bytes, .tag = tag}, x,
        e);
}

static bool receive_bytes(LsComm *c, int peer, uint32_t tag, void *data, int64_t bytes,
                          LsTransfer *x, LsError *e)
{
    return begin(c, peer, false, (LsLinkMessage){.data = data, .bytes = bytes, .tag = tag}, x, e);
}

static bool wait_for(LsComm *c, LsTransfer *x, LsError *e)
{
    Streams *s = streams_of(c);
    LsLinkMessage *m = x->engine;
    ls_watch_lock(s->watch);
    const bool ok = m->done || ls_watch_until(s->watch, &m->done, e);
    ls_watch_unlock(s->watch);
    if (ok) {
        ls_records_give(&s->messages, m);
        s->begun--;
    }
    return ok;
}

/* Dissemination: after k rounds a rank has heard, through others, of 2^k ranks before it. */
bool ls_comm_barrier(LsComm *c, LsError *e)
{
    uint32_t tag = LS_TAG_OWN;
    for (int d = 1; d < c->size; d *= 2, tag++) {
        const int to = (c->rank + d) % c->size, from = (c->rank + c->size - d) % c->size;
        LsTransfer out, in;
        if (!c->engine->receive(c, from, tag, NULL, 0, &in, e)
            || !c->engine->send(c, to, tag, NULL, 0, &out, e) || !c->engine->wait(c, &out, e)
            || !c->engine->wait(c, &in, e))
            return false;
    }
    return true;
}

static bool abandon(LsComm *c, const LsError *why)
{
    return ls_watch_abandon(streams_of(c)->watch, why);
}

bool ls_comm_streams_fail(LsComm *c, int gone, const LsError *why)
{
    LsWatch *w = streams_of(c)->watch;
    ls_watch_lock(w);
    ls_watch_fail(w, gone, why->code, "%s", why->text);
    ls_watch_unlock(w);
    return ls_watch_abandon(w, why);
}

static void free_streams(Streams *s)
{
    for (int k = 0; k < s->comm.size && s->link != NULL; k++)
        ls_link_close(&s->link[k]);
    ls_records_end(&s->messages);
    free(s->link);
    free(s);
}

static void close_streams(LsComm *c)
{
    Streams *s = streams_of(c);
    ls_watch_lock(s->watch);
    if (s->begun > 0)
        ls_watch_fail(s->watch, -1, LS_EXIT_RANK, "rank %d ended before its messages were complete",
                      c->rank);
    ls_watch_unlock(s->watch);
    ls_watch_close(s->watch);
    free_streams(s);
}

static const LsCommEngine table = {NULL,    send_bytes,   receive_bytes, wait_for, ls_comm_barrier,
                                   abandon, close_streams};

/* Also the link to itself: a pair of sockets. */
static bool open_links(Streams *s, const int *stream, const LsSeal *seal)
{
    bool ok = true;
    for (int k = 0; k < s->comm.size; k++) {
        int pair[2] = {stream[k], stream[k]};
        if (k == s->comm.rank
            && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
            ok = false;
        s->link[k] = (LsLink){.rank = s->comm.rank, .peer = k, .out = pair[0], .in = pair[1]};
        if (seal != NULL && k != s->comm.rank)
            s->link[k].seal = seal[k];
    }
    return ok;
}

static void close_all(const LsStreams *of)
{
    for (int k = 0; k < of->size; k++)
        if (of->stream[k] >= 0)
            close(of->stream[k]);
    for (int k = 0; k < (of->hub ? 1 : of->size); k++)
        if (of->channel[k] >= 0)
            close(of->channel[k]);
}

LsComm *ls_comm_streams(const char *name, const LsStreams *of, LsError *e)
{
    Streams *s = calloc(1, sizeof *s);
    LsLink *link = calloc((size_t)of->size, sizeof *link);
    if (s == NULL || link == NULL) {
        free(s);
        free(link);
        close_all(of);
        ls_fail(e, LS_EXIT_FAIL, "out of memory");
        return NULL;
    }
    s->link = link;
    s->messages = (LsRecords){.size = sizeof(LsLinkMessage)};
    s->engine = table;
    s->engine.name = name;
    s->comm = (LsComm){&s->engine, of->rank, of->size, of->hub ? of->size : 1};
    const LsWatchWork work = {fill, move, s, 2 * of->size};
    if (!open_links(s, of->stream, of->stream_seal))
        ls_fail(e, LS_EXIT_FAIL, "no descriptors left");
    s->watch = ls_watch_open(of->rank, of->size, of->hub, of->channel, of->channel_seal, &work, e);
    if (s->watch != NULL && e->code == LS_EXIT_DONE)
        return &s->comm;
    if (s->watch != NULL)
        ls_watch_close(s->watch);
    free_streams(s);
    return NULL;
}
