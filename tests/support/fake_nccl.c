/* tests/support/fake_nccl.c -- an NCCL for ranks that are threads and whose GPUs' memory is this
 * process's.
 *
 * A group of a rank runs when those before it are complete. Sends and receives of two ranks'
 * running groups pair up in order. Calls outside groups, unknown ranks and unequal lengths are
 * misuse. */
#include "tests/support/fake_nccl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct Id { char bytes[128]; } Id;

int ncclGetVersion(int *version);
const char *ncclGetErrorString(int result);
int ncclGetUniqueId(Id *id);
int ncclCommInitRank(void **comm, int size, Id id, int rank);
int ncclCommDestroy(void *comm);
int ncclCommAbort(void *comm);
int ncclCommGetAsyncError(void *comm, int *result);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclSend(const void *data, size_t n, int type, int peer, void *comm, void *stream);
int ncclRecv(void *data, size_t n, int type, int peer, void *comm, void *stream);
FakeNcclQuery fake_nccl_query;

typedef struct Op { char *data; size_t n; int peer; bool sends, done; } Op;
typedef struct Group { struct Group *next; int n, left; Op op[256]; } Group;
typedef struct Comm { int rank, size; Id id; void *stream; Group *groups; } Comm;

FakeNccl fake_nccl = {.version = 22000};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Comm *comm_of[FAKE_NCCL_MOST];
static _Thread_local Group *open_group;
static _Thread_local Comm *open_comm;
static int ids;

int ncclGetVersion(int *version)
{
    *version = fake_nccl.version;
    return 0;
}

const char *ncclGetErrorString(int result)
{
    return result == 5 ? "invalid usage" : "unhandled cuda error";
}

int ncclGetUniqueId(Id *id)
{
    memset(id, 0, sizeof *id);
    pthread_mutex_lock(&lock);
    id->bytes[0] = (char)++ids;
    pthread_mutex_unlock(&lock);
    return 0;
}

int ncclCommInitRank(void **comm, int size, Id id, int rank)
{
    Comm *c = calloc(1, sizeof *c);
    pthread_mutex_lock(&lock);
    const bool ok = !fake_nccl.fail_init && rank >= 0 && rank < size && size <= FAKE_NCCL_MOST
                    && id.bytes[0] == (char)ids;
    fake_nccl.misused += !ok && !fake_nccl.fail_init;
    if (ok) {
        *c = (Comm){.rank = rank, .size = size, .id = id};
        comm_of[rank] = *comm = c;
        fake_nccl.made++;
    } else {
        free(c);
    }
    pthread_mutex_unlock(&lock);
    return ok ? 0 : 1;
}

static int end(Comm *c, int *count)
{
    pthread_mutex_lock(&lock);
    *count += 1;
    comm_of[c->rank] = NULL;
    for (Group *next; c->groups != NULL; c->groups = next) {
        next = c->groups->next;
        free(c->groups);
    }
    free(c);
    pthread_mutex_unlock(&lock);
    return 0;
}

int ncclCommDestroy(void *comm) { return end(comm, &fake_nccl.destroyed); }
int ncclCommAbort(void *comm) { return end(comm, &fake_nccl.aborted); }

int ncclCommGetAsyncError(void *comm, int *result)
{
    (void)comm;
    pthread_mutex_lock(&lock);
    *result = fake_nccl.async_error;
    pthread_mutex_unlock(&lock);
    return 0;
}

int ncclGroupStart(void)
{
    open_group = calloc(1, sizeof *open_group);
    open_comm = NULL;
    return 0;
}

static int misuse(void)
{
    pthread_mutex_lock(&lock);
    fake_nccl.misused++;
    pthread_mutex_unlock(&lock);
    return 5;
}

static int add(Comm *c, Op op, int type, void *stream)
{
    if (open_group == NULL || open_group->n == 256 || type != 0 || op.n == 0 || op.peer < 0
        || op.peer >= c->size || (open_comm != NULL && open_comm != c))
        return misuse();
    open_comm = c;
    pthread_mutex_lock(&lock);          /* other ranks ask for it */
    c->stream = stream;
    pthread_mutex_unlock(&lock);
    open_group->op[open_group->n++] = op;
    open_group->left++;
    return 0;
}

int ncclSend(const void *data, size_t n, int type, int peer, void *comm, void *stream)
{
    return add(comm, (Op){(char *)(size_t)data, n, peer, true, false}, type, stream);
}

int ncclRecv(void *data, size_t n, int type, int peer, void *comm, void *stream)
{
    return add(comm, (Op){data, n, peer, false, false}, type, stream);
}

static Op *find(Comm *c, int peer, bool sends)
{
    Group *g = c != NULL ? c->groups : NULL;
    for (int k = 0; g != NULL && k < g->n; k++)
        if (g->op[k].peer == peer && g->op[k].sends == sends && !g->op[k].done)
            return &g->op[k];
    return NULL;
}

static void finish(Comm *c, Op *op)
{
    Group *g = c->groups;
    op->done = true;
    if (--g->left > 0)
        return;
    c->groups = g->next;
    free(g);
}

/* Runs what can run. */
static void settle(void)
{
    for (bool moved = true; moved; ) {
        moved = false;
        for (int a = 0; a < FAKE_NCCL_MOST; a++)
            for (int b = 0; b < FAKE_NCCL_MOST; b++) {
                Op *from = find(comm_of[a], b, true), *to = find(comm_of[b], a, false);
                if (from == NULL || to == NULL)
                    continue;
                fake_nccl.misused += from->n != to->n;
                memcpy(to->data, from->data, from->n < to->n ? from->n : to->n);
                finish(comm_of[a], from);
                finish(comm_of[b], to);
                moved = true;
            }
    }
}

int ncclGroupEnd(void)
{
    Group *g = open_group, **at;
    open_group = NULL;
    if (g == NULL)
        return misuse();
    if (g->n == 0) {
        free(g);
        return 0;
    }
    pthread_mutex_lock(&lock);
    for (at = &open_comm->groups; *at != NULL; at = &(*at)->next)
        continue;
    *at = g;
    settle();
    pthread_mutex_unlock(&lock);
    return 0;
}

int fake_nccl_query(void *stream)
{
    int state = 0;
    pthread_mutex_lock(&lock);
    for (int k = 0; k < FAKE_NCCL_MOST; k++)
        if (comm_of[k] != NULL && comm_of[k]->stream == stream && comm_of[k]->groups != NULL)
            state = FAKE_NCCL_BUSY;
    pthread_mutex_unlock(&lock);
    return state;
}
