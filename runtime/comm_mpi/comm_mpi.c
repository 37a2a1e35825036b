/* runtime/comm_mpi/comm_mpi.c -- see comm_mpi.h.
 *
 * MPI ends all ranks when one of them dies, as far as it notices. It does not notice for minutes when a machine or the
 * network is down, so a thread sends signs of life, by MPI too, and counts the seconds without any. A lock keeps
 * calls of both threads apart. Without MPI's consent to that the rank itself does it all, while it waits. */
#include "runtime/comm_mpi/comm_mpi.h"
#include "runtime/base/clock.h"
#include "runtime/comm/comm_stream.h"
#include "runtime/comm/comm_watch.h"

#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PULSE_MS = 500, TICK_MS = 100, LATE_MS = 2000 };
enum { MOVE_US = 500 };         /* MPI moves messages while somebody calls it: the thread does, if the rank computes */
enum {
    TURN_MS = 250, TURNS = 8,   /* ranks that fail together speak one after the other: the first one ends them all */
    NOTICE_MS = 2000,           /* after a rank was lost: for the first rank to say it and to end all */
    ENDED_MS = 1500,            /* for messages of a rank that has ended */
};
enum { SPINS = 200, NAP_US = 50 };
enum { PIECE = 1 << 30, PIECES = 64 };          /* bytes of a message for MPI, which counts them as int */
enum { ALIVE = 1, ENDED = 2 };                  /* signs of life, the last one */
static const int64_t MS = 1000000;              /* in ns */

typedef struct Piece { MPI_Request request; int bytes; } Piece;
typedef struct Message { struct Message *next; bool receives; uint32_t tag; int pieces; Piece piece[PIECES]; } Message;

typedef struct Other {          /* another rank */
    int64_t heard_ns;
    int in, out;                /* signs of life under way */
    MPI_Request coming, going;
    bool ended;
} Other;

typedef struct Mpi {
    LsComm comm;
    MPI_Comm messages, pulses;
    Message *free;
    atomic_llong begun;         /* messages nobody has waited for */
    int64_t most_tag;
    Other *other;
    bool threads, started, stop;
    pthread_t thread;
    pthread_mutex_t lock;       /* of MPI, of what follows, and of `other` */
    int64_t pulsed_ns, ticked_ns;
    atomic_int lost;            /* a rank; -1: none. A rank that waits reads it without the lock */
    bool cut_off;               /* all of them are */
    bool missed;                /* this rank waits for one that has ended */
    int errors;                 /* the process's first standard error */
} Mpi;

static Mpi *mpi_of(LsComm *c) { return (Mpi *)(void *)c; }

static bool refuse(int failed, const char *what, LsError *e)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;
    if (failed == MPI_SUCCESS)
        return true;
    MPI_Error_string(failed, text, &n);
    return ls_fail(e, LS_EXIT_RANK, "MPI cannot %s: %s", what, text);
}

static bool fine(const Mpi *m, LsError *e)
{
    if (m->lost < 0)
        return true;
    if (m->cut_off)
        return ls_fail(e, LS_EXIT_RANK, "rank %d is cut off: no other rank gave a sign of life for %d s", m->comm.rank,
                       LS_WATCH_SILENCE_MS / 1000);
    return ls_fail(e, LS_EXIT_RANK, "rank %d gave no sign of life for %d s: it hangs, or its machine or the network is down",
                   m->lost, LS_WATCH_SILENCE_MS / 1000);
}

/* The rank that prints what all see: the first that is neither lost nor at its end. */
static bool is_teller(const Mpi *m)
{
    const int64_t now = ls_now_ns();
    for (int k = 0; k < m->comm.rank; k++)
        if (!m->other[k].ended && now - m->other[k].heard_ns < (LS_WATCH_SILENCE_MS - LATE_MS) * MS)
            return false;
    return true;
}

/* Ends this process, and by that what MPI can reach of the others. */
_Noreturn static void leave(const Mpi *m, bool tells, const LsError *why)
{
    if (tells)
        dprintf(m->errors, "%s: error: %s\n", program_invocation_name, why->text);
    _exit((int)why->code);
}

static void feel(Mpi *m, int k, int64_t now)
{
    Other *o = &m->other[k];
    int came = 1;
    MPI_Status s;
    while (!o->ended && came) {
        came = 0;
        if (o->coming == MPI_REQUEST_NULL)
            MPI_Irecv(&o->in, 1, MPI_INT, k, 0, m->pulses, &o->coming);
        MPI_Test(&o->coming, &came, &s);
        if (came) {
            o->heard_ns = now;
            o->ended = o->in == ENDED;
        }
    }
}

static void send_pulse(Mpi *m, int k, int what)
{
    Other *o = &m->other[k];
    int gone = 1;
    if (o->going != MPI_REQUEST_NULL)
        MPI_Test(&o->going, &gone, MPI_STATUS_IGNORE);
    if (!gone)
        return;
    o->out = what;
    MPI_Isend(&o->out, 1, MPI_INT, k, 0, m->pulses, &o->going);
}

/* Signs of life: sends them, takes them, and sees who gives none. With the lock held. */
static void tick(Mpi *m)
{
    const int64_t now = ls_now_ns(), gap = now - m->ticked_ns;
    const bool due = now - m->pulsed_ns > PULSE_MS * MS;
    int others = 0, silent = 0, lost = -1;
    m->ticked_ns = now;
    for (int k = 0; k < m->comm.size; k++) {
        Other *o = &m->other[k];
        if (k == m->comm.rank || o->ended)
            continue;
        o->heard_ns += gap > LATE_MS * MS ? gap : 0;    /* this process was stopped itself */
        if (due)
            send_pulse(m, k, ALIVE);
        feel(m, k, now);
        others += !o->ended;
        silent += !o->ended && now - o->heard_ns > (LS_WATCH_SILENCE_MS - LATE_MS) * MS;
        lost = lost < 0 && !o->ended && now - o->heard_ns > LS_WATCH_SILENCE_MS * MS ? k : lost;
    }
    m->pulsed_ns = due ? now : m->pulsed_ns;
    if (m->lost >= 0 || lost < 0)
        return;
    m->cut_off = silent == others && others > 1;
    m->lost = lost;
}

static void *watch(void *arg)
{
    Mpi *m = arg;
    int64_t lost_ns = 0;
    LsError e = {0};
    pthread_mutex_lock(&m->lock);
    while (!m->stop) {
        const struct timespec nap = {.tv_nsec = atomic_load(&m->begun) > 0 ? MOVE_US * 1000 : TICK_MS * MS};
        if (m->lost < 0)
            tick(m);
        if (m->lost >= 0 && lost_ns == 0)
            lost_ns = ls_now_ns();
        const bool tells = is_teller(m);
        if (lost_ns != 0 && (tells || ls_now_ns() - lost_ns > NOTICE_MS * MS)) {
            fine(m, &e);
            leave(m, tells, &e);
        }
        pthread_mutex_unlock(&m->lock);
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&m->lock);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* A rank that waits looks after signs of life itself, if no thread may. */
static bool look_around(Mpi *m, LsError *e)
{
    if (!m->threads) {
        if (ls_now_ns() - m->ticked_ns > TICK_MS * MS)
            tick(m);
    }
    return fine(m, e);
}

static bool begin(LsComm *c, int peer, uint32_t tag, bool receives, char *data, int64_t bytes, LsTransfer *x, LsError *e)
{
    Mpi *m = mpi_of(c);
    const int64_t number = tag >= LS_TAG_OWN ? m->most_tag - (tag - LS_TAG_OWN) : tag;
    Message *w = m->free;
    if (number > m->most_tag || bytes > (int64_t)PIECE * PIECES)
        return ls_fail(e, LS_EXIT_RANK, "this MPI has no messages with tag %u, of %lld bytes", tag, (long long)bytes);
    if (w == NULL && (w = malloc(sizeof *w)) == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    m->free = w == m->free ? w->next : m->free;
    *w = (Message){.receives = receives, .tag = tag};
    *x = (LsTransfer){w, peer, bytes};
    m->begun++;
    do {
        Piece *p = &w->piece[w->pieces++];
        p->bytes = bytes < PIECE ? (int)bytes : PIECE;
        pthread_mutex_lock(&m->lock);
        const int failed = receives ? MPI_Irecv(data, p->bytes, MPI_BYTE, peer, (int)number, m->messages, &p->request)
                                    : MPI_Isend(data, p->bytes, MPI_BYTE, peer, (int)number, m->messages, &p->request);
        pthread_mutex_unlock(&m->lock);
        if (!refuse(failed, receives ? "receive" : "send", e))
            return false;
        data += p->bytes;
        bytes -= p->bytes;
    } while (bytes > 0);
    return true;
}

static bool send_bytes(LsComm *c, int peer, uint32_t tag, const void *data, int64_t bytes, LsTransfer *x, LsError *e)
{
    return begin(c, peer, tag, false, (char *)(uintptr_t)data, bytes, x, e);
}

static bool receive_bytes(LsComm *c, int peer, uint32_t tag, void *data, int64_t bytes, LsTransfer *x, LsError *e)
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
static bool has_ended(Mpi *m, int peer, int64_t *since_ns, LsError *e)
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
    if (ls_now_ns() - *since_ns < ENDED_MS * MS)
        return false;
    m->missed = true;
    ls_fail(e, LS_EXIT_RANK, "rank %d ended while others still wait for it", who);
    return true;
}

static bool wait_request(Mpi *m, MPI_Request *r, int peer, MPI_Status *s, LsError *e)
{
    int done = 0, spins = 0;
    int64_t ended_ns = 0;
    for (;;) {
        pthread_mutex_lock(&m->lock);
        const int failed = MPI_Test(r, &done, s);
        pthread_mutex_unlock(&m->lock);
        int class = MPI_SUCCESS;
        if (failed != MPI_SUCCESS && MPI_Error_class(failed, &class) == MPI_SUCCESS && class == MPI_ERR_TRUNCATE)
            return ls_fail(e, LS_EXIT_CHECK, "rank %d sends more bytes than rank %d takes", peer, m->comm.rank);
        if (failed != MPI_SUCCESS)
            return refuse(failed, "complete a message", e);
        if (done)
            return true;
        if (!look_around(m, e) || (spins > SPINS && has_ended(m, peer, &ended_ns, e)))
            return false;
        rest(&spins);
    }
}

static bool wait_for(LsComm *c, LsTransfer *x, LsError *e)
{
    Mpi *m = mpi_of(c);
    Message *w = x->engine;
    for (int k = 0; k < w->pieces; k++) {
        MPI_Status s;
        int got = 0;
        if (!wait_request(m, &w->piece[k].request, x->peer, &s, e))
            return false;
        if (w->receives && MPI_Get_count(&s, MPI_BYTE, &got) == MPI_SUCCESS && got != w->piece[k].bytes)
            return ls_fail(e, LS_EXIT_CHECK, "rank %d sends %d bytes with tag %u, but rank %d takes %d", x->peer, got, w->tag,
                           c->rank, w->piece[k].bytes);
    }
    w->next = m->free;
    m->free = w;
    m->begun--;
    return true;
}

static bool barrier(LsComm *c, LsError *e)
{
    Mpi *m = mpi_of(c);
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
    Mpi *m = mpi_of(c);
    pthread_mutex_lock(&m->lock);       /* the thread has no more to say */
    const bool all_see = m->lost >= 0 || m->missed, tells = !all_see || is_teller(m);
    const int64_t wait_ns = (!tells ? NOTICE_MS : all_see ? 0 : TURN_MS * (c->rank < TURNS ? c->rank : TURNS)) * MS;
    const struct timespec turn = {wait_ns / 1000000000, wait_ns % 1000000000};
    nanosleep(&turn, NULL);
    if (m->lost >= 0)
        leave(m, tells, why);
    if (all_see)
        dprintf(m->errors, "%s: error: %s\n", program_invocation_name, why->text);
    else
        dprintf(m->errors, "%s: error: rank %d: %s\n", program_invocation_name, c->rank, why->text);
    MPI_Abort(MPI_COMM_WORLD, (int)why->code);
    _exit((int)why->code);
}

static void say_goodbye(Mpi *m)
{
    for (int k = 0; k < m->comm.size; k++) {
        Other *o = &m->other[k];
        if (k == m->comm.rank)
            continue;
        if (o->going != MPI_REQUEST_NULL)
            MPI_Wait(&o->going, MPI_STATUS_IGNORE);
        send_pulse(m, k, ENDED);
    }
}

/* Every rank waits for the others' goodbye, as MPI has no end for one alone. */
static void close_mpi(LsComm *c)
{
    Mpi *m = mpi_of(c);
    LsError e = {0};
    if (m->begun > 0 && ls_fail(&e, LS_EXIT_RANK, "ended before its messages were complete") == false)
        abandon(c, &e);
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_mutex_unlock(&m->lock);
    if (m->started)
        pthread_join(m->thread, NULL);
    m->threads = false;
    say_goodbye(m);
    for (bool all = false; !all; ) {
        const struct timespec nap = {.tv_nsec = MS};
        all = true;
        for (int k = 0; k < c->size; k++)
            all &= k == c->rank || m->other[k].ended;
        if (!all && !look_around(m, &e))
            abandon(c, &e);
        if (!all)
            nanosleep(&nap, NULL);
    }
    MPI_Finalize();
    for (Message *next; m->free != NULL; m->free = next) {
        next = m->free->next;
        free(m->free);
    }
    close(m->errors);
    pthread_mutex_destroy(&m->lock);
    free(m->other);
    free(m);
}

static const LsCommEngine table = {"mpi", send_bytes, receive_bytes, wait_for, barrier, abandon, close_mpi};

/* How many ranks share this machine. */
static int count_local(void)
{
    MPI_Comm here;
    int n = 1;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) == MPI_SUCCESS) {
        MPI_Comm_size(here, &n);
        MPI_Comm_free(&here);
    }
    return n;
}

static bool start_thread(Mpi *m)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    m->started = m->threads && pthread_create(&m->thread, NULL, watch, m) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return m->started || !m->threads;
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
    return ls_fail(e, LS_EXIT_RANK, "rank %d and rank 0 do not run the same: %.250s; and %.250s", who, mine, first);
}

static Mpi *new_mpi(int rank, int size, int provided)
{
    Mpi *m = calloc(1, sizeof *m);
    Other *other = calloc((size_t)size, sizeof *other);
    int *most, given = 0;
    if (m == NULL || other == NULL) {
        free(m);
        free(other);
        return NULL;
    }
    *m = (Mpi){.comm = {&table, rank, size, count_local()}, .other = other, .lost = -1, .ticked_ns = ls_now_ns(),
               .threads = provided >= MPI_THREAD_SERIALIZED, .errors = dup(STDERR_FILENO), .most_tag = 32767};
    for (int k = 0; k < size; k++)
        other[k] = (Other){.heard_ns = m->ticked_ns, .coming = MPI_REQUEST_NULL, .going = MPI_REQUEST_NULL};
    if (MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &given) == MPI_SUCCESS && given)
        m->most_tag = *most;
    pthread_mutex_init(&m->lock, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &m->messages);
    MPI_Comm_dup(MPI_COMM_WORLD, &m->pulses);
    MPI_Comm_set_errhandler(m->messages, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(m->pulses, MPI_ERRORS_RETURN);
    return m;
}

static bool open_mpi(int64_t ranks, const char *run, LsCommOpened *o, LsError *e)
{
    int provided, rank, size;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    o->silent = rank > 0;
    bool ok = size == ranks || ls_fail(e, LS_EXIT_USAGE, "--ranks %lld, but MPI has %d%s", (long long)ranks, size, size == 1
                                       ? ": start the program with mpirun, or with srun --mpi=pmix" : "");
    ok = ok && same_run(run, rank, e);
    Mpi *m = ok ? new_mpi(rank, size, provided) : NULL;
    if (ok && (m == NULL || !start_thread(m)))
        ok = ls_fail(e, LS_EXIT_FAIL, "no memory or thread left to watch over ranks");
    if (ok)
        o->comm = &m->comm;
    else
        MPI_Finalize();
    return ok;
}

const LsCommKind ls_comm_mpi = {"mpi", open_mpi};
