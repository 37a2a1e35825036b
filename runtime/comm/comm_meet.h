/* runtime/comm/comm_meet.h -- ranks of several machines find each other, and become sure that they
 * mean the same run. */
#ifndef LS_RUNTIME_COMM_COMM_MEET_H
#define LS_RUNTIME_COMM_COMM_MEET_H

#include "runtime/comm/comm.h"

enum { LS_MEET_S = 60 };        /* a rank that was not started by then is missed */

typedef struct LsMeetWish {
    const char *peers;          /* HOST:PORT of every rank, with commas */
    int rank, size;
    const char *run;            /* what ranks must have in common; it is told to those alone who
                                 * have the key */
    const char *token;          /* NULL: the key is what every copy of the program has: */
    const char *program;        /* its hash */
} LsMeetWish;

/* Anybody may connect, and is turned away without a word if he lacks the run's key. Of those who
 * have it, rank 0 says what the run is: a rank that differs from it ends, as one does that came
 * twice, and the others wait on for the right one. *silent, after a failure: another rank prints
 * it. */
bool ls_comm_meet(const LsMeetWish *w, LsComm **c, bool *silent, LsError *e);

#endif
