/* runtime/comm_mpi/comm_mpi.c -- see comm_mpi.h: messages, and the begin and end of a run. */
#include "runtime/comm_mpi/comm_mpi.h"
#include "runtime/base/clock.h"
#include "runtime/comm/comm_stream.h"
#include "runtime/comm_mpi/mpi_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TURN_MS = 250, TURNS = 8,   /* ranks that fail together speak one after the other: the first one
                                 * ends them all */
    ENDED_MS = 1500,            /* for messages of a rank that has ended */
};
enum { SPINS = 200, NAP_US = 50 };
enum { PIECE = 1 << 30 };       /* bytes of a message for MPI, which counts them as int */

static LsMpi *mpi_of(LsComm *c) { return (LsMpi *)(void *)c; }

static bool refuse(int failed, const char *what, LsError *e)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;
    if (failed == MPI_SUCCESS)
        return true;
    MPI_Error_string(failed, text, &n);
    return ls_fail(e, LS_EXIT_RANK, "MPI cannot %s: %s", what, text);
}

static bool begin(LsComm *c, int peer, uint32_t tag, bool receives, char *data, int64_t bytes,
                  LsTransfer *x, LsError *e)
{
    LsMpi *m = mpi_of(c);
    const int64_t number = tag >= LS_TAG_OWN ? m->most_tag - (tag - LS_TAG_OWN) : tag;
    if (number > m->most_tag || bytes > (int64_t)PIECE * LS_MPI_PIECES)
        return ls_fail(e, LS_EXIT_RANK, "this MPI has no messages with tag %u, of %lld bytes", tag,
                       (long long)bytes);
    LsMpiMessage *w = ls_records_take(&m->records, e);
    if (w == NULL)
        return false;
    *w = (LsMpiMessage){.receives = receives, .tag = tag};
    *x = (LsTransfer){w, peer, bytes};
    m->begun++;
    do {
        LsMpiPiece *p = &w->piece[w->pieces++];
        p->bytes = bytes < PIECE ? (int)bytes : PIECE;
        pthread_mutex_lock(&m->lock);
        const int failed =
            receives
                ? MPI_Irecv(data, p->bytes, MPI_BYTE, peer, (int)number, m->messages, &p->request)
                : MPI_Isend(data, p->bytes, MPI_BYTE, peer, (int)number, m->messages, &p->request);
        pthread_mutex_unlock(&m->lock);
        if (!refuse(failed, receives ? "receive" : "send", e))
            return false;
        data += p->bytes;
        bytes -= p->bytes;
    } while (bytes > 0);
    return true;
}

static bool send_bytes(LsComm *c, int peer, uint32_t tag, const void *data, int64_t bytes,
                       LsTransfer *x, LsError *e)
{
    return begin(c, peer, tag, false, (char *)(uintptr_t)data, bytes, x, e);
}

static bool receive_bytes(LsComm *c, int peer, uint32_t tag, void *data, int64_t bytes,
                          LsTransfer *x, LsError *e)
{
    return begin(c, peer, tag, true, data, bytes, x, e);
}

/* Waits a moment, longer when it has waited for long: ranks may share cores. */
static void rest(int *spins)
{
    const struct timespec nap = {.tv_nsec = NAP_US * 1000};
    if (++*spins > SPINS)
        nanosleep(&nap, NULL);
}

/* Whether rank `peer` (-1: any) has ended, and nothing more can come of it. */
static bool has_ended(LsMpi *m, int peer, int64_t *since_ns, LsError *e)
{
    int who = -1;
    pthread_mutex_lock(&m->lock);
    for (int k = 0; k < m->comm.size; k++)
        if ((peer < 0 || peer == k) && m->other[k].ended)
            who = k;
    pthread_mutex_unlock(&m->lock);
    if (who < 0)
        return false;
    if (*since_ns == 0)
        *since_ns = ls_now_ns();
    if (ls_now_ns() - *since_ns < ENDED_MS * LS_MPI_MS)
        return false;
    m->missed = true;
    ls_fail(e, LS_EXIT_RANK, "rank %d ended while others still wait for it", who);
    return true;
}

static bool wait_request(LsMpi *m, MPI_Request *r, int peer, MPI_Status *s, LsError *e)
{
    int done = 0, spins = 0;
    int64_t ended_ns = 0;
    for (;;) {
        pthread_mutex_lock(&m->lock);
        const int failed = MPI_Test(r, &done, s);
        pthread_mutex_unlock(&m->lock);
        int class = MPI_SUCCESS;
        if (failed != MPI_SUCCESS && MPI_Error_class(failed, &class) == MPI_SUCCESS
            && class == MPI_ERR_TRUNCATE)
            return ls_fail(e, LS_EXIT_CHECK, "rank %d sends more bytes than rank %d takes", peer,
                           m->comm.rank);
        if (failed != MPI_SUCCESS)
            return refuse(failed, "complete a message", e);
        if (done)
            return true;
        if (!ls_mpi_look_around(m, e) || (spins > SPINS && has_ended(m, peer, &ended_ns, e)))
            return false;
        rest(&spins);
    }
}

static bool wait_for(LsComm *c, LsTransfer *x, LsError *e)
{
    LsMpi *m = mpi_of(c);
    LsMpiMessage *w = x->engine;
    for (int k = 0; k < w->pieces; k++) {
        MPI_Status s;
        int got = 0;
        if (!wait_request(m, &w->piece[k].request, x->peer, &s, e))
            return false;
        if (w->receives && MPI_Get_count(&s, MPI_BYTE, &got) == MPI_SUCCESS
            && got != w->piece[k].bytes)
            return ls_fail(e, LS_EXIT_CHECK,
                           "rank %d sends %d bytes with tag %u, but rank %d takes %d", x->peer, got,
                           w->tag, c->rank, w->piece[k].bytes);
    }
    ls_records_give(&m->records, w);
    m->begun--;
    return true;
}

static bool barrier(LsComm *c, LsError *e)
{
    LsMpi *m = mpi_of(c);
    MPI_Request r;
    MPI_Status s;
    pthread_mutex_lock(&m->lock);
    const int failed = MPI_Ibarrier(m->messages, &r);
    pthread_mutex_unlock(&m->lock);
    return refuse(failed, "begin a barrier", e) && wait_request(m, &r, -1, &s, e);
}

/* Does not return. MPI ends the others, or this process's end does. */
static bool abandon(LsComm *c, const LsError *why)
{
    LsMpi *m = mpi_of(c);
    pthread_mutex_lock(&m->lock);       /* the thread has no more to say */
    const bool all_see = m->lost >= 0 || m->missed, tells = !all_see || ls_mpi_is_teller(m);
    const int turn_ms = TURN_MS * (c->rank < TURNS ? c->rank : TURNS);
    const int64_t wait_ns = (!tells ? LS_MPI_NOTICE_MS : all_see ? 0 : turn_ms) * LS_MPI_MS;
    const struct timespec turn = {wait_ns / 1000000000, wait_ns % 1000000000};
    nanosleep(&turn, NULL);
    if (m->lost >= 0)
        ls_mpi_leave(m, tells, why);
    if (all_see)
        dprintf(m->errors, "%s: error: %s\n", program_invocation_name, why->text);
    else
        dprintf(m->errors, "%s: error: rank %d: %s\n", program_invocation_name, c->rank, why->text);
    MPI_Abort(MPI_COMM_WORLD, (int)why->code);
    _exit((int)why->code);
}

/* Every rank waits for the others' goodbye, as MPI has no end for one alone. */
static void close_mpi(LsComm *c)
{
    LsMpi *m = mpi_of(c);
    LsError e = {0};
    if (m->begun > 0
        && ls_fail(&e, LS_EXIT_RANK, "ended before its messages were complete") == false)
        abandon(c, &e);
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_mutex_unlock(&m->lock);
    if (m->started)
        pthread_join(m->thread, NULL);
    m->threads = false;
    ls_mpi_say_goodbye(m);
    for (bool all = false; !all; ) {
        const struct timespec nap = {.tv_nsec = LS_MPI_MS};
        all = true;
        for (int k = 0; k < c->size; k++)
            all &= k == c->rank || m->other[k].ended;
        if (!all && !ls_mpi_look_around(m, &e))
            abandon(c, &e);
        if (!all)
            nanosleep(&nap, NULL);
    }
    MPI_Finalize();
    ls_records_end(&m->records);
    close(m->errors);
    pthread_mutex_destroy(&m->lock);
    free(m->other);
    free(m);
}

static const LsCommEngine table = {"mpi",   send_bytes, receive_bytes, wait_for,
                                   barrier, abandon,    close_mpi};

/* How many ranks share this machine. */
static int count_local(void)
{
    MPI_Comm here;
    int n = 1;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here)
        == MPI_SUCCESS) {
        MPI_Comm_size(here, &n);
        MPI_Comm_free(&here);
    }
    return n;
}

/* Compares what ranks run with rank 0. False: some rank differs; rank 0 says so. */
static bool same_run(const char *run, int rank, LsError *e)
{
    enum { N = 700 };
    char mine[N] = "", first[N];
    snprintf(mine, sizeof mine, "%s", run);
    memcpy(first, mine, sizeof first);
    MPI_Bcast(first, N, MPI_CHAR, 0, MPI_COMM_WORLD);
    int differs = strcmp(mine, first) != 0 ? rank : -1, who = -1;
    MPI_Allreduce(&differs, &who, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (who < 0)
        return true;
    if (rank == who && who != 0)
        MPI_Send(mine, N, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Recv(mine, N, MPI_CHAR, who, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ls_make_printable(mine);
    ls_make_printable(first);
    return ls_fail(e, LS_EXIT_RANK, "rank %d and rank 0 do not run the same: %.250s; and %.250s",
                   who, mine, first);
}

static LsMpi *new_mpi(int rank, int size, int provided)
{
    LsMpi *m = calloc(1, sizeof *m);
    LsMpiOther *other = calloc((size_t)size, sizeof *other);
    int *most, given = 0;
    if (m == NULL || other == NULL) {
        free(m);
        free(other);
        return NULL;
    }
    *m = (LsMpi){.comm = {&table, rank, size, count_local()},
                 .other = other,
                 .lost = -1,
                 .ticked_ns = ls_now_ns(),
                 .threads = provided >= MPI_THREAD_SERIALIZED,
                 .errors = dup(STDERR_FILENO),
                 .most_tag = 32767,
                 .records = {.size = sizeof(LsMpiMessage)}};
    for (int k = 0; k < size; k++)
        other[k] = (LsMpiOther){
            .heard_ns = m->ticked_ns, .coming = MPI_REQUEST_NULL, .going = MPI_REQUEST_NULL};
    if (MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &given) == MPI_SUCCESS && given)
        m->most_tag = *most;
    pthread_mutex_init(&m->lock, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &m->messages);
    MPI_Comm_dup(MPI_COMM_WORLD, &m->pulses);
    MPI_Comm_set_errhandler(m->messages, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(m->pulses, MPI_ERRORS_RETURN);
    return m;
}

/* A refusal that all ranks agree on. mpirun kills the others as soon as one ends with it, so the
 * sentence comes first. */
static void tell_all(int rank, const LsError *e, LsCommOpened *o)
{
    if (rank == 0) {
        fprintf(stderr, "%s: error: %s\n", program_invocation_name, e->text);
        fflush(stderr);
    }
    o->silent = true;
    MPI_Barrier(MPI_COMM_WORLD);
}

static bool open_mpi(int64_t ranks, const char *run, LsCommOpened *o, LsError *e)
{
    int provided, rank, size;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    o->silent = rank > 0;
    bool ok =
        size == ranks
        || ls_fail(e, LS_EXIT_USAGE, "--ranks %lld, but MPI has %d%s", (long long)ranks, size,
                   size == 1 ? ": start the program with mpirun, or with srun --mpi=pmix" : "");
    ok = ok && same_run(run, rank, e);
    if (!ok)
        tell_all(rank, e, o);
    LsMpi *m = ok ? new_mpi(rank, size, provided) : NULL;
    if (ok && (m == NULL || !ls_mpi_watch(m)))
        ok = ls_fail(e, LS_EXIT_FAIL, "no memory or thread left to watch over ranks");
    if (ok)
        o->comm = &m->comm;
    else
        MPI_Finalize();
    return ok;
}

const LsCommKind ls_comm_mpi = {"mpi", open_mpi};
