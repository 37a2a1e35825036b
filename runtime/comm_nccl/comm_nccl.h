/* runtime/comm_nccl/comm_nccl.h -- the engine for ranks whose messages lie in the memory of NVIDIA
 * GPUs: NCCL.
 *
 * It stands on another engine, which carries NCCL's identity, what each message is, barriers and
 * failures. */
#ifndef LS_RUNTIME_COMM_NCCL_COMM_NCCL_H
#define LS_RUNTIME_COMM_NCCL_COMM_NCCL_H

#include "runtime/comm/comm.h"

/* A stream of the rank's GPU for messages alone. query: as cudaStreamQuery: 0: all is done, `busy`:
 * not yet. */
typedef struct LsNcclStream { void *stream; int (*query)(void *stream); int busy; } LsNcclStream;

/* Takes `under`, unless it fails. A rank has a GPU of its own, which is the current one. Messages
 * between two ranks must be named in the same order by both, whatever their tags; another order is
 * an error. */
LsComm *ls_comm_nccl(LsComm *under, LsNcclStream stream, LsError *e);
/* Gives the messages named so far to the stream, as one group. Whoever waits for a message does so,
 * too. */
bool ls_comm_nccl_launch(LsComm *c, LsError *e);

#endif
