/* runtime/comm/comm_link.c -- see comm_link.h. */
#include "runtime/comm/comm_link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MARK = 0x4c536d73, HEAD = sizeof(LsLinkHead), CHECK = sizeof(uint64_t) };
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

/* Bytes on the way of a message with so many. */
static int64_t whole(const LsLink *l, int64_t bytes)
{
    return HEAD + bytes + (l->seal.on && bytes > 0 ? CHECK : 0);
}

/* The check of a head. */
static uint64_t seal_head(const LsLink *l, LsLinkWay *w, int sender)
{
    const LsSealHead of = {w->number, sender, w->head.tag, w->head.bytes};
    uint64_t check[2] = {0};
    if (l->seal.on)
        ls_seal_head(&l->seal, &of, check);
    w->hides = check[1];
    w->number++;
    return check[0];
}

static void seal_bytes(const LsLink *l, LsLinkWay *w, const unsigned char *data, int64_t end)
{
    if (!l->seal.on || w->summed >= end)
        return;
    ls_seal_add(&l->seal, &w->sum, data + w->summed, end - w->summed);
    w->summed = end;
}

static void begin_going(LsLink *l, const LsLinkMessage *m)
{
    l->to.head = (LsLinkHead){MARK, m->tag, m->bytes, 0};
    l->to.head.check = seal_head(l, &l->to, l->rank);
    l->to.sum = (LsSealSum){.nrest = 0};
    l->to.summed = 0;
}

/* The next bytes of the first message that goes out: of head, data and check. At most `most` bytes
 * of data. */
static size_t next_parts(LsLink *l, const LsLinkMessage *m, int64_t most, struct iovec part[3])
{
    const int64_t in_data = l->to.at > HEAD ? l->to.at - HEAD : 0;
    size_t n = 0;
    if (l->to.at < HEAD)
        part[n++] = (struct iovec){(char *)&l->to.head + l->to.at, (size_t)(HEAD - l->to.at)};
    if (in_data < m->bytes) {
        const int64_t rest = m->bytes - in_data < most ? m->bytes - in_data : most;
        seal_bytes(l, &l->to, m->data, in_data + rest);
        part[n++] = (struct iovec){m->data + in_data, (size_t)rest};
        if (in_data + rest < m->bytes)
            return n;
    }
    const int64_t of_check = in_data > m->bytes ? in_data - m->bytes : 0,
                  left = whole(l, m->bytes) - HEAD - m->bytes - of_check;
    if (left > 0) {
        l->to.check = ls_seal_bytes(&l->seal, &l->to.sum, l->to.hides);
        part[n++] = (struct iovec){(char *)&l->to.check + of_check, (size_t)left};
    }
    return n;
}

/* Moves on in the first message that goes out; true: it is complete. */
static bool push(LsLink *l, int64_t *left)
{
    LsLinkMessage *m = l->going;
    if (l->to.at == 0 && l->to.head.mark == 0)
        begin_going(l, m);
    while (l->to.at < whole(l, m->bytes) && *left > 0) {
        struct iovec part[3];
        const struct msghdr msg = {.msg_iov = part, .msg_iovlen = next_parts(l, m, *left, part)};
        const ssize_t sent = sendmsg(l->out, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            is_cut(l);
            return false;
        }
        l->to.at += sent;
        *left -= sent;
    }
    return l->to.at == whole(l, m->bytes);
}

static void push_all(LsLink *l)
{
    int64_t left = MOST;
    while (l->going != NULL && !l->closed && push(l, &left)) {
        l->going->done = true;
        l->going = l->going->next;
        l->to.at = 0;
        l->to.head.mark = 0;
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
    return sent == m->bytes
           || ls_fail(e, LS_EXIT_CHECK,
                      "rank %d sends %lld bytes with tag %u, but rank %d takes %lld", l->peer,
                      (long long)sent, m->tag, l->rank, (long long)m->bytes);
}

static LsLinkMessage *store(LsLink *l, LsError *e)
{
    LsLinkMessage *m = malloc(sizeof *m);
    unsigned char *data = malloc((size_t)l->from.head.bytes + 1);
    if (m == NULL || data == NULL) {
        ls_fail(e, LS_EXIT_FAIL, "no memory for a message of %lld bytes",
                (long long)l->from.head.bytes);
        free(m);
        free(data);
        return NULL;
    }
    *m = (LsLinkMessage){
        .data = data, .bytes = l->from.head.bytes, .tag = l->from.head.tag, .stored = true};
    append(&l->stored, m);
    return m;
}

/* Finds a place for the message whose head has come, if anybody waits for it or for one behind
 * it. */
static bool place(LsLink *l, LsError *e)
{
    for (LsLinkMessage **at = &l->wanted; *at != NULL; at = &(*at)->next)
        if ((*at)->tag == l->from.head.tag) {
            l->coming = *at;
            *at = l->coming->next;
            return same_length(l, l->from.head.bytes, l->coming, e);
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
    l->from.at = 0;
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
    if (l->from.at < HEAD || l->coming != NULL)
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
    const bool in = l->from.at >= HEAD ? l->coming != NULL : l->wanted != NULL;
    return (short)((in ? POLLIN : 0) | (l->going != NULL ? POLLOUT : 0));
}

bool ls_link_waits(const LsLink *l)
{
    return l->going != NULL || l->wanted != NULL || (l->coming != NULL && !l->coming->stored)
           || (l->coming != NULL && l->coming->named != NULL);
}

/* A head has come. */
static bool take_head(LsLink *l, LsError *e)
{
    const LsLinkHead *h = &l->from.head;
    if (h->check != seal_head(l, &l->from, l->peer) || h->bytes < 0)
        return ls_fail(
            e, LS_EXIT_RANK,
            "a message of rank %d changed on its way to rank %d: the check of its head is wrong",
            l->peer, l->rank);
    l->from.sum = (LsSealSum){.nrest = 0};
    l->from.summed = 0;
    return place(l, e);
}

/* All bytes of the message have come. */
static bool take_message(LsLink *l, LsError *e)
{
    const int64_t bytes = l->coming->bytes;
    if (l->seal.on && bytes > 0
        && l->from.check != ls_seal_bytes(&l->seal, &l->from.sum, l->from.hides))
        return ls_fail(
            e, LS_EXIT_RANK,
            "a message of %lld bytes of rank %d changed on its way to rank %d: its check is wrong",
            (long long)bytes, l->peer, l->rank);
    arrive(l);
    return true;
}

/* Where the next bytes belong, and how many. */
static char *next_place(LsLink *l, int64_t *n)
{
    LsLinkWay *w = &l->from;
    const int64_t bytes = w->at < HEAD ? 0 : l->coming->bytes;
    *n = w->at < HEAD           ? HEAD - w->at
         : w->at < HEAD + bytes ? HEAD + bytes - w->at
                                : whole(l, bytes) - w->at;
    if (w->at < HEAD)
        return (char *)&w->head + w->at;
    return w->at < HEAD + bytes ? (char *)l->coming->data + w->at - HEAD
                                : (char *)&w->check + w->at - HEAD - bytes;
}

/* Reads on; false: nothing more for now. */
static bool pull(LsLink *l, int64_t *left, LsError *e)
{
    int64_t n;
    char *to = next_place(l, &n);
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
    l->from.at += got;
    *left -= got;
    if (l->from.at >= (int64_t)sizeof l->from.head.mark && l->from.head.mark != MARK)
        return ls_fail(e, LS_EXIT_RANK, "what rank %d sends is no message", l->peer);
    if (l->from.at == HEAD && l->coming == NULL && !take_head(l, e))
        return false;
    if (l->coming != NULL) {
        const int64_t in_data = l->from.at - HEAD, bytes = l->coming->bytes;
        seal_bytes(l, &l->from, l->coming->data, in_data < bytes ? in_data : bytes);
        if (l->from.at == whole(l, bytes) && !take_message(l, e))
            return false;
    }
    return *left > 0;
}

bool ls_link_move(LsLink *l, LsError *e)
{
    int64_t left = MOST;
    push_all(l);
    while (!l->closed && (l->from.at < HEAD || l->coming != NULL)
           && (l->wanted != NULL || l->coming != NULL) && pull(l, &left, e))
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
