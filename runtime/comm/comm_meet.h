/* runtime/comm/comm_meet.h -- ranks of several machines find each other, and become sure that they mean the same run. */
#ifndef LS_RUNTIME_COMM_COMM_MEET_H
#define LS_RUNTIME_COMM_COMM_MEET_H

#include "runtime/comm/comm.h"

enum {
    LS_MEET_S = 60,             /* a rank that was not started by then is missed */
    LS_ANSWER_S = 5,            /* one that is there must say who it is by then */
};

/* peers: HOST:PORT of every rank, with commas. run: what ranks must have in common. *silent, after a failure: another
 * rank prints it. Anybody may connect, and is turned away if it is no rank. */
bool ls_comm_meet(const char *peers, int rank, int size, const char *run, LsComm **c, bool *silent, LsError *e);

#endif
