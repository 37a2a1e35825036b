/* runtime/comm_nccl/comm_nccl.c -- see comm_nccl.h.
 *
 * NCCL has no tags: its messages between two ranks pair up in order. So what is begun is kept until
 * somebody waits, or launches it, and then goes as one group, whose parts do not wait for each
 * other. Beside each message its tag and length go by the engine below, for the receiver to
 * compare. */
#include "runtime/comm_nccl/comm_nccl.h"
#include "runtime/comm/comm_records.h"
#include "runtime/comm/comm_stream.h"
#include "runtime/comm_nccl/nccl_library.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HEAD_TAG = LS_TAG_OWN + 100, ID_TAG };
enum { BYTE = 0, SPINS = 1000, NAP_US = 20 };

typedef struct Head { uint32_t tag, unused; int64_t bytes; } Head;
typedef struct Message {
    struct Message *next;
    Head mine, theirs;
    LsTransfer head;
    char *data;
    int peer;
    bool sends;
} Message;

typedef struct Nccl {
    LsComm comm;
    LsComm *under;
    LsNcclApi api;
    void *nccl;
    LsNcclStream stream;
    Message *begun, **last;     /* not launched yet, oldest first */
    LsRecords messages;
    bool failed;
} Nccl;

static Nccl *nccl_of(LsComm *c) { return (Nccl *)(void *)c; }

static bool worked(Nccl *n, int result, const char *what, LsError *e)
{
    if (result == 0)
        return true;
    n->failed = true;
    return ls_fail(e, LS_EXIT_DEVICE, "NCCL: %s: %s", what, n->api.GetErrorString(result));
}

static bool begin(LsComm *c, int peer, uint32_t tag, bool sends, char *data, int64_t bytes,
                  LsTransfer *x, LsError *e)
{
    Nccl *n = nccl_of(c);
    const LsCommEngine *under = n->under->engine;
    Message *m = ls_records_take(&n->messages, e);
    if (m == NULL)
        return false;
    *m =
        (Message){.mine = {.tag = tag, .bytes = bytes}, .data = data, .peer = peer, .sends = sends};
    *x = (LsTransfer){m, peer, bytes};
    *n->last = m;
    n->last = &m->next;
    return sends ? under->send(n->under, peer, HEAD_TAG, &m->mine, sizeof m->mine, &m->head, e)
                 : under->receive(n->under, peer, HEAD_TAG, &m->theirs, sizeof m->theirs, &m->head,
                                  e);
}

static bool send_bytes(LsComm *c, int peer, uint32_t tag, const void *data, int64_t bytes,
                       LsTransfer *x, LsError *e)
{
    return begin(c, peer, tag, true, (char *)(uintptr_t)data, bytes, x, e);
}

static bool receive_bytes(LsComm *c, int peer, uint32_t tag, void *data, int64_t bytes,
                          LsTransfer *x, LsError *e)
{
    return begin(c, peer, tag, false, data, bytes, x, e);
}

/* Launches all that was begun, as one group. NCCL takes no message without bytes. */
static bool launch(Nccl *n, LsError *e)
{
    if (n->begun == NULL)
        return true;
    bool ok = worked(n, n->api.GroupStart(), "ncclGroupStart", e);
    for (Message *m = n->begun; ok && m != NULL; m = m->next) {
        if (m->mine.bytes == 0)
            continue;
        const size_t bytes = (size_t)m->mine.bytes;
        ok = m->sends
                 ? worked(n, n->api.Send(m->data, bytes, BYTE, m->peer, n->nccl, n->stream.stream),
                          "ncclSend", e)
                 : worked(n, n->api.Recv(m->data, bytes, BYTE, m->peer, n->nccl, n->stream.stream),
                          "ncclRecv", e);
    }
    n->begun = NULL;
    n->last = &n->begun;
    return ok && worked(n, n->api.GroupEnd(), "ncclGroupEnd", e);
}

bool ls_comm_nccl_launch(LsComm *c, LsError *e) { return launch(nccl_of(c), e); }

/* Waits until the GPU has done all that was launched. The engine below ends this process if a peer
 * dies meanwhile. */
static bool drain(Nccl *n, LsError *e)
{
    const struct timespec nap = {.tv_nsec = NAP_US * 1000};
    for (int spins = 0;; spins++) {
        int broken = 0;
        const int state = n->stream.query(n->stream.stream);
        if (state == 0)
            return true;
        if (state != n->stream.busy) {
            n->failed = true;
            return ls_fail(e, LS_EXIT_DEVICE, "the GPU failed in a message of NCCL (error %d)",
                           state);
        }
        if (!worked(n, n->api.CommGetAsyncError(n->nccl, &broken), "ncclCommGetAsyncError", e)
            || !worked(n, broken, "a message", e))
            return false;
        if (spins > SPINS)
            nanosleep(&nap, NULL);
    }
}

static bool wait_for(LsComm *c, LsTransfer *x, LsError *e)
{
    Nccl *n = nccl_of(c);
    Message *m = x->engine;
    if (!launch(n, e) || !n->under->engine->wait(n->under, &m->head, e))
        return false;
    if (!m->sends && (m->mine.tag != m->theirs.tag || m->mine.bytes != m->theirs.bytes))
        return ls_fail(e, LS_EXIT_CHECK,
                       "rank %d sends %lld bytes with tag %u, but rank %d takes %lld with tag %u",
                       m->peer, (long long)m->theirs.bytes, m->theirs.tag, c->rank,
                       (long long)m->mine.bytes, m->mine.tag);
    if (!drain(n, e))
        return false;
    ls_records_give(&n->messages, m);
    return true;
}

static bool barrier(LsComm *c, LsError *e)
{
    Nccl *n = nccl_of(c);
    return launch(n, e) && n->under->engine->barrier(n->under, e);
}

/* Ends the GPU's work too, which would wait for peers for ever. */
static bool abandon(LsComm *c, const LsError *why)
{
    Nccl *n = nccl_of(c);
    n->failed = true;
    if (n->nccl != NULL)
        n->api.CommAbort(n->nccl);
    n->nccl = NULL;
    return n->under->engine->abandon(n->under, why);
}

static void close_nccl(LsComm *c)
{
    Nccl *n = nccl_of(c);
    if (n->nccl != NULL && n->failed)
        n->api.CommAbort(n->nccl);
    else if (n->nccl != NULL)
        n->api.CommDestroy(n->nccl);
    n->under->engine->close(n->under);
    ls_records_end(&n->messages);
    free(n);
}

static const LsCommEngine table = {"nccl",  send_bytes, receive_bytes, wait_for,
                                   barrier, abandon,    close_nccl};

/* Rank 0 makes the identity that joins all of them. */
static bool share_id(Nccl *n, LsNcclId *id, LsError *e)
{
    LsComm *u = n->under;
    if (u->rank > 0)
        return ls_comm_receive_now(u, 0, ID_TAG, id, sizeof *id, e);
    if (!worked(n, n->api.GetUniqueId(id), "ncclGetUniqueId", e))
        return false;
    for (int k = 1; k < u->size; k++)
        if (!ls_comm_send_now(u, k, ID_TAG, id, sizeof *id, e))
            return false;
    return true;
}

LsComm *ls_comm_nccl(LsComm *under, LsNcclStream stream, LsError *e)
{
    LsNcclId id;
    Nccl *n = calloc(1, sizeof *n);
    if (n == NULL) {
        ls_fail(e, LS_EXIT_FAIL, "out of memory");
        return NULL;
    }
    *n = (Nccl){.comm = {&table, under->rank, under->size, under->local},
                .under = under,
                .stream = stream,
                .last = &n->begun,
                .messages = {.size = sizeof(Message)}};
    if (ls_nccl_load(&n->api, e) && share_id(n, &id, e)
        && worked(n, n->api.CommInitRank(&n->nccl, under->size, id, under->rank),
                  "ncclCommInitRank", e))
        return &n->comm;
    free(n);
    return NULL;
}
