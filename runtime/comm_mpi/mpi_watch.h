/* runtime/comm_mpi/mpi_watch.h -- the state of the engine for MPI, and its watch over the other
 * ranks.
 *
 * MPI ends all ranks when one of them dies, as far as it notices. It does not notice for minutes
 * when a machine or the network is down, so a thread sends signs of life, by MPI too, and counts
 * the seconds without any. A lock keeps calls of both threads apart. Without MPI's consent to that
 * the rank itself does it all, while it waits. */
#ifndef LS_RUNTIME_COMM_MPI_MPI_WATCH_H
#define LS_RUNTIME_COMM_MPI_MPI_WATCH_H

#include "runtime/comm/comm.h"
#include "runtime/comm/comm_records.h"

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

enum { LS_MPI_PIECES = 64 };
enum { LS_MPI_NOTICE_MS = 2000 };       /* after a rank was lost: for the first rank to say it and
                                         * to end all */
#define LS_MPI_MS INT64_C(1000000)      /* in ns */

typedef struct LsMpiPiece { MPI_Request request; int bytes; } LsMpiPiece;
typedef struct LsMpiMessage {
    bool receives;
    uint32_t tag;
    int pieces;
    LsMpiPiece piece[LS_MPI_PIECES];
} LsMpiMessage;

typedef struct LsMpiOther {     /* another rank */
    int64_t heard_ns;
    int in, out;                /* signs of life under way */
    MPI_Request coming, going;
    bool ended;
} LsMpiOther;

typedef struct LsMpi {
    LsComm comm;
    MPI_Comm messages, pulses;
    LsRecords records;          /* LsMpiMessage */
    atomic_llong begun;         /* messages nobody has waited for */
    int64_t most_tag;
    LsMpiOther *other;
    bool threads, started, stop;
    pthread_t thread;
    pthread_mutex_t lock;       /* of MPI, of what follows, and of `other` */
    int64_t pulsed_ns, ticked_ns;
    atomic_int lost;            /* a rank; -1: none. A rank that waits reads it without the lock */
    bool cut_off;               /* all of them are */
    bool missed;                /* this rank waits for one that has ended */
    int errors;                 /* the process's first standard error */
} LsMpi;

/* Starts the thread, if MPI has it. False: no thread is left. */
bool ls_mpi_watch(LsMpi *m);

/* A rank that waits looks after signs of life itself, if no thread may. False: a rank is lost. */
bool ls_mpi_look_around(LsMpi *m, LsError *e);

/* Tells the other ranks that this one is at its end. The thread has stopped. */
void ls_mpi_say_goodbye(LsMpi *m);

/* With the lock held: whether this is the rank that prints what all see, the first that is neither
 * lost nor at its end. */
bool ls_mpi_is_teller(const LsMpi *m);

/* Ends this process, and by that what MPI can reach of the others. */
_Noreturn void ls_mpi_leave(const LsMpi *m, bool tells, const LsError *why);

#endif
