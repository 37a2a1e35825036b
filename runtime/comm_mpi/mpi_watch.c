/* runtime/comm_mpi/mpi_watch.c -- see mpi_watch.h. */
#include "runtime/comm_mpi/mpi_watch.h"
#include "runtime/base/clock.h"
#include "runtime/comm/comm_watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { PULSE_MS = 500, TICK_MS = 100, LATE_MS = 2000 };
enum { MOVE_US = 500 };         /* MPI moves messages while somebody calls it: the thread does, if
                                 * the rank computes */
enum { ALIVE = 1, ENDED = 2 };  /* signs of life, the last one */

static bool fine(const LsMpi *m, LsError *e)
{
    if (m->lost < 0)
        return true;
    if (m->cut_off)
        return ls_fail(e, LS_EXIT_RANK,
                       "rank %d is cut off: no other rank gave a sign of life for %d s",
                       m->comm.rank, LS_WATCH_SILENCE_MS / 1000);
    return ls_fail(
        e, LS_EXIT_RANK,
        "rank %d gave no sign of life for %d s: it hangs, or its machine or the network is down",
        m->lost, LS_WATCH_SILENCE_MS / 1000);
}

bool ls_mpi_is_teller(const LsMpi *m)
{
    const int64_t now = ls_now_ns();
    for (int k = 0; k < m->comm.rank; k++)
        if (!m->other[k].ended
            && now - m->other[k].heard_ns < (LS_WATCH_SILENCE_MS - LATE_MS) * LS_MPI_MS)
            return false;
    return true;
}

_Noreturn void ls_mpi_leave(const LsMpi *m, bool tells, const LsError *why)
{
    if (tells)
        dprintf(m->errors, "%s: error: %s\n", program_invocation_name, why->text);
    _exit((int)why->code);
}

static void feel(LsMpi *m, int k, int64_t now)
{
    LsMpiOther *o = &m->other[k];
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

static void send_pulse(LsMpi *m, int k, int what)
{
    LsMpiOther *o = &m->other[k];
    int gone = 1;
    if (o->going != MPI_REQUEST_NULL)
        MPI_Test(&o->going, &gone, MPI_STATUS_IGNORE);
    if (!gone)
        return;
    o->out = what;
    MPI_Isend(&o->out, 1, MPI_INT, k, 0, m->pulses, &o->going);
}

/* Signs of life: sends them, takes them, and sees who gives none. With the lock held. */
static void tick(LsMpi *m)
{
    const int64_t now = ls_now_ns(), gap = now - m->ticked_ns;
    const bool due = now - m->pulsed_ns > PULSE_MS * LS_MPI_MS;
    int others = 0, silent = 0, lost = -1;
    m->ticked_ns = now;
    for (int k = 0; k < m->comm.size; k++) {
        LsMpiOther *o = &m->other[k];
        if (k == m->comm.rank || o->ended)
            continue;
        o->heard_ns += gap > LATE_MS * LS_MPI_MS ? gap : 0;    /* this process was stopped itself */
        if (due)
            send_pulse(m, k, ALIVE);
        feel(m, k, now);
        others += !o->ended;
        silent += !o->ended && now - o->heard_ns > (LS_WATCH_SILENCE_MS - LATE_MS) * LS_MPI_MS;
        lost =
            lost < 0 && !o->ended && now - o->heard_ns > LS_WATCH_SILENCE_MS * LS_MPI_MS ? k : lost;
    }
    m->pulsed_ns = due ? now : m->pulsed_ns;
    if (m->lost >= 0 || lost < 0)
        return;
    m->cut_off = silent == others && others > 1;
    m->lost = lost;
}

static void *watch(void *arg)
{
    LsMpi *m = arg;
    int64_t lost_ns = 0;
    LsError e = {0};
    pthread_mutex_lock(&m->lock);
    while (!m->stop) {
        const struct timespec nap = {.tv_nsec = atomic_load(&m->begun) > 0 ? MOVE_US * 1000
                                                                           : TICK_MS * LS_MPI_MS};
        if (m->lost < 0)
            tick(m);
        if (m->lost >= 0 && lost_ns == 0)
            lost_ns = ls_now_ns();
        const bool tells = ls_mpi_is_teller(m);
        if (lost_ns != 0 && (tells || ls_now_ns() - lost_ns > LS_MPI_NOTICE_MS * LS_MPI_MS)) {
            fine(m, &e);
            ls_mpi_leave(m, tells, &e);
        }
        pthread_mutex_unlock(&m->lock);
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&m->lock);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

bool ls_mpi_look_around(LsMpi *m, LsError *e)
{
    if (!m->threads) {
        if (ls_now_ns() - m->ticked_ns > TICK_MS * LS_MPI_MS)
            tick(m);
    }
    return fine(m, e);
}

bool ls_mpi_watch(LsMpi *m)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    m->started = m->threads && pthread_create(&m->thread, NULL, watch, m) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return m->started || !m->threads;
}

void ls_mpi_say_goodbye(LsMpi *m)
{
    for (int k = 0; k < m->comm.size; k++) {
        LsMpiOther *o = &m->other[k];
        if (k == m->comm.rank)
            continue;
        if (o->going != MPI_REQUEST_NULL)
            MPI_Wait(&o->going, MPI_STATUS_IGNORE);
        send_pulse(m, k, ENDED);
    }
}
