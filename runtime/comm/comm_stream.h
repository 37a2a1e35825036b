/* runtime/comm/comm_stream.h -- the engine for ranks that are joined by streams of bytes: pairs of
 * sockets, connections. */
#ifndef LS_RUNTIME_COMM_COMM_STREAM_H
#define LS_RUNTIME_COMM_COMM_STREAM_H

#include "runtime/comm/comm.h"
#include "runtime/comm/comm_seal.h"

enum { LS_TAG_OWN = 0xffff0000u };      /* this tag and those above it are the engines' own */

/* What a rank has of every other one: descriptors that do not block. */
typedef struct LsStreams {
    int rank, size;
    const int *stream;          /* by rank: the way of messages; -1: none, of itself for one */
    bool hub;                   /* channel has one element, to the process that started all */
    const int *channel;         /* by rank; -1: none */
    const LsSeal *stream_seal, *channel_seal;   /* by rank; NULL: they have no checks */
} LsStreams;

/* Takes the descriptors, also if it fails. */
LsComm *ls_comm_streams(const char *name, const LsStreams *s, LsError *e);

/* Ends all ranks, as LsCommEngine.abandon does, with a sentence that names who failed. gone: a rank
 * that will not print it. */
bool ls_comm_streams_fail(LsComm *c, int gone, const LsError *why);

/* A barrier of messages, for LsCommEngine.barrier. */
bool ls_comm_barrier(LsComm *c, LsError *e);

#endif
