/* runtime/comm/comm_open.h -- joins the ranks of a run, from its options and from what started the
 * process. */
#ifndef LS_RUNTIME_COMM_COMM_OPEN_H
#define LS_RUNTIME_COMM_COMM_OPEN_H

#include "runtime/comm/comm.h"

typedef struct LsCommOpened {
    LsComm *comm;               /* NULL: one rank alone, or the starter */
    bool starter;               /* this process started all ranks, and they have ended */
    int code;                   /* of the starter: its exit code */
    bool silent;                /* after a failure: another rank prints it */
} LsCommOpened;

/* An engine that a program was linked with, for processes that something else started. */
typedef struct LsCommKind {
    const char *name;           /* as in --comm */
    bool (*open)(int64_t ranks, const char *run, LsCommOpened *o, LsError *e);
} LsCommKind;

typedef struct LsCommWish {
    int64_t ranks;              /* --ranks; 0: as many as --peers names, or as something started, or
                                 * 1 */
    const char *engine;         /* --comm: local, sockets, mpi; NULL: the one that fits the other
                                 * options */
    const char *peers;          /* --peers: host:port of every rank, with commas; NULL: none */
    int64_t rank;               /* --rank; -1: not given */
    const char *run;            /* what ranks must have in common, in words: program and options */
    const char *program;        /* a hash that all copies of the program have */
    const char *token_file;     /* --token-file; NULL: the variable LOWERSET_TOKEN, or none */
    const LsCommKind *linked;   /* NULL: none */
} LsCommWish;

/* How many ranks a run will have, before any of them is joined. */
typedef struct LsCommCount {
    int64_t ranks;
    const char *by;             /* what says so: "--ranks", "--peers", "mpirun", ... */
} LsCommCount;
LsCommCount ls_comm_count(const LsCommWish *w);
/* For a process that ends before ranks are joined, as something is wrong that all see: whether
 * another one says so. Then it waits a moment, for the other's sentence to come first. */
bool ls_comm_is_spoken_for(void);

/* Refuses runs whose number of processes is not the number of ranks: copies that know nothing of
 * each other would overwrite each other's results. On this machine it starts the ranks, and returns
 * in each of them and at last in the starter: nothing of this process may have threads yet. */
bool ls_comm_open(const LsCommWish *w, LsCommOpened *o, LsError *e);

#endif
