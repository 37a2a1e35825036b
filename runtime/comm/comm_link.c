/* runtime/comm/comm_link.c -- see comm_link.h. */
#include "runtime/comm/comm_link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MARK = 0x4c536d73, HEAD = sizeof(LsLinkHead) };
enum { MOST = 1 << 20 };        /* bytes per call in each direction: nobody else moves meanwhile */

static void append(LsLinkMessage **list, LsLinkMessage *m)
{
    while (*list != NULL)
        list = &(*list)->next;
    m->next = NULL;
    *list = m;
}

/* False: nothing more goes. */
static bool is_cut(LsLink *l)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return false;
    l->closed = true;
    l->broken = errno;
    return true;
}

/* Moves on in the first message that goes out; true: it is complete. */
static bool push(LsLink *l, int64_t *left)
{
    LsLinkMessage *m = l->going;
    if (l->out_at == 0)
        l->out_head = (LsLinkHead){MARK, m->tag, m->bytes};
    while (l->out_at < HEAD + m->bytes && *left > 0) {
        const int64_t in_data = l->out_at > HEAD ? l->out_at - HEAD : 0;
        struct iovec part[2];
        size_t n = 0;
        if (l->out_at < HEAD)
            part[n++] = (struct iovec){(char *)&l->out_head + l->out_at, (size_t)(HEAD - l->out_at)};
        const int64_t rest = m->bytes - in_data < *left ? m->bytes - in_data : *left;
        if (rest > 0)
            part[n++] = (struct iovec){m->data + in_data, (size_t)rest};
        const struct msghdr msg = {.msg_iov = part, .msg_iovlen = n};
        const ssize_t sent = sendmsg(l->out, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            is_cut(l);
            return false;
        }
        l->out_at += sent;
        *left -= sent;
    }
    return l->out_at == HEAD + m->bytes;
}

static void push_all(LsLink *l)
{
    int64_t left = MOST;
    while (l->going != NULL && !l->closed && push(l, &left)) {
        l->going->done = true;
        l->going = l->going->next;
        l->out_at = 0;
    }
}

void ls_link_send(LsLink *l, LsLinkMessage *m)
{
    const bool first = l->going == NULL;
    append(&l->going, m);
    if (first)
        push_all(l);
}

static bool same_length(const LsLink *l, int64_t sent, const LsLinkMessage *m, LsError *e)
{
    return sent == m->bytes || ls_fail(e, LS_EXIT_CHECK, "rank %d sends %lld bytes with tag %u, but rank %d takes %lld",
                                       l->peer, (long long)sent, m->tag, l->rank, (long long)m->bytes);
}

static LsLinkMessage *store(LsLink *l, LsError *e)
{
    LsLinkMessage *m = malloc(sizeof *m);
    unsigned char *data = malloc((size_t)l->in_head.bytes + 1);
    if (m == NULL || data == NULL) {
        ls_fail(e, LS_EXIT_FAIL, "no memory for a message of %lld bytes", (long long)l->in_head.bytes);
        free(m);
        free(data);
        return NULL;
    }
    *m = (LsLinkMessage){.data = data, .bytes = l->in_head.bytes, .tag = l->in_head.tag, .stored = true};
    append(&l->stored, m);
    return m;
}

/* Finds a place for the message whose head has come, if anybody waits for it or for one behind it. */
static bool place(LsLink *l, LsError *e)
{
    for (LsLinkMessage **at = &l->wanted; *at != NULL; at = &(*at)->next)
        if ((*at)->tag == l->in_head.tag) {
            l->coming = *at;
            *at = l->coming->next;
            return same_length(l, l->in_head.bytes, l->coming, e);
        }
    if (l->wanted != NULL)
        l->coming = store(l, e);
    return l->wanted == NULL || l->coming != NULL;
}

static void unlist(LsLinkMessage **list, const LsLinkMessage *m)
{
    while (*list != m)
        list = &(*list)->next;
    *list = m->next;
}

static void hand_over(LsLink *l, LsLinkMessage *from, LsLinkMessage *to)
{
    if (from->bytes > 0)
        memcpy(to->data, from->data, (size_t)from->bytes);
    to->done = true;
    unlist(&l->stored, from);
    free(from->data);
    free(from);
}

static void arrive(LsLink *l)
{
    LsLinkMessage *m = l->coming;
    m->done = true;
    l->coming = NULL;
    l->in_at = 0;
    if (m->named != NULL)
        hand_over(l, m, m->named);
}

bool ls_link_receive(LsLink *l, LsLinkMessage *m, LsError *e)
{
    for (LsLinkMessage *s = l->stored; s != NULL; s = s->next)
        if (s->tag == m->tag && s->named == NULL) {
            if (!same_length(l, s->bytes, m, e))
                return false;
            if (s->done)
                hand_over(l, s, m);
            else
                s->named = m;
            return true;
        }
    append(&l->wanted, m);
    if (l->in_at < HEAD || l->coming != NULL)
        return true;
    if (!place(l, e))
        return false;
    if (l->coming != NULL && l->coming->bytes == 0)
        arrive(l);
    return true;
}

short ls_link_events(const LsLink *l)
{
    if (l->closed)
        return 0;
    const bool in = l->in_at >= HEAD ? l->coming != NULL : l->wanted != NULL;
    return (short)((in ? POLLIN : 0) | (l->going != NULL ? POLLOUT : 0));
}

bool ls_link_waits(const LsLink *l)
{
    return l->going != NULL || l->wanted != NULL || (l->coming != NULL && !l->coming->stored)
           || (l->coming != NULL && l->coming->named != NULL);
}

/* Reads on; false: nothing more for now. */
static bool pull(LsLink *l, int64_t *left, LsError *e)
{
    char *to = l->in_at < HEAD ? (char *)&l->in_head + l->in_at : (char *)l->coming->data + l->in_at - HEAD;
    int64_t n = l->in_at < HEAD ? HEAD - l->in_at : HEAD + l->coming->bytes - l->in_at;
    n = n < *left ? n : *left;
    const ssize_t got = n > 0 ? recv(l->in, to, (size_t)n, MSG_DONTWAIT) : 0;
    if (got < 0) {
        is_cut(l);
        return false;
    }
    if (got == 0 && n > 0) {
        l->closed = true;
        return false;
    }
    l->in_at += got;
    *left -= got;
    if (l->in_at == HEAD && l->coming == NULL) {
        if (l->in_head.mark != MARK || l->in_head.bytes < 0)
            return ls_fail(e, LS_EXIT_RANK, "what rank %d sends is no message", l->peer);
        if (!place(l, e))
            return false;
    }
    if (l->coming != NULL && l->in_at == HEAD + l->coming->bytes)
        arrive(l);
    return *left > 0;
}

bool ls_link_move(LsLink *l, LsError *e)
{
    int64_t left = MOST;
    push_all(l);
    while (!l->closed && (l->in_at < HEAD || l->coming != NULL) && (l->wanted != NULL || l->coming != NULL)
           && pull(l, &left, e))
        continue;
    return e->code == LS_EXIT_DONE;
}

void ls_link_close(LsLink *l)
{
    for (LsLinkMessage *next; l->stored != NULL; l->stored = next) {
        next = l->stored->next;
        free(l->stored->data);
        free(l->stored);
    }
    if (l->out >= 0)
        close(l->out);
    if (l->in >= 0 && l->in != l->out)
        close(l->in);
}
