/* runtime/comm/comm.h -- ranks that train one model together, and what they send each other.
 *
 * A rank is a process, or a thread of one. An engine carries bytes between ranks: threads of one
 * process, sockets, MPI, NCCL. All that trainers do with more than one rank goes through this
 * table, so that order of sums, checkpoints and errors are the same with every engine. */
#ifndef LS_RUNTIME_COMM_COMM_H
#define LS_RUNTIME_COMM_COMM_H

#include "runtime/base/run_error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct LsComm LsComm;

/* A message under way. Its bytes belong to the engine until `wait` returns, or after a failure
 * until `close` returns. */
typedef struct LsTransfer {
    void *engine;               /* the engine's own */
    int peer;
    int64_t bytes;
} LsTransfer;

/* Functions return false with a sentence in *e. After a failure only `abandon` and `close` may be
 * called. Each rank calls from one thread at a time. An engine may hold a sender in `wait` until
 * its peer receives: no program may count on messages being stored. */
typedef struct LsCommEngine {
    const char *name;           /* as in --comm */
    /* Begin a message of `bytes` bytes and return at once. Messages of one pair of ranks with one
     * tag arrive in the order in which they were sent; sender and receiver name the same number of
     * bytes, anything else is an error. */
    bool (*send)(LsComm *c, int peer, uint32_t tag, const void *data, int64_t bytes, LsTransfer *x,
                 LsError *e);
    bool (*receive)(LsComm *c, int peer, uint32_t tag, void *data, int64_t bytes, LsTransfer *x,
                    LsError *e);
    /* Returns when the message is complete, or within seconds when its peer has died. */
    bool (*wait)(LsComm *c, LsTransfer *x, LsError *e);
    bool (*barrier)(LsComm *c, LsError *e);
    /* Ends all other ranks with this exit code and sentence, as this one cannot go on. why: its own
     * error, or what a function of this table said. Whatever fails in however many ranks, `abandon`
     * returns true in one of them, which prints its error; the others end without a word. An engine
     * may print it and end the process itself. */
    bool (*abandon)(LsComm *c, const LsError *why);
    void (*close)(LsComm *c);   /* frees c; no other rank may still need a message of this one */
} LsCommEngine;

struct LsComm {
    const LsCommEngine *engine;
    int rank, size;             /* rank in [0, size) */
    int local;                  /* ranks that share this machine's cores, this one included, as far
                                 * as the engine knows */
};

/* Send or receive a message, and wait for it. */
static inline bool ls_comm_send_now(LsComm *c, int peer, uint32_t tag, const void *data,
                                    int64_t bytes, LsError *e)
{
    LsTransfer x;
    return c->engine->send(c, peer, tag, data, bytes, &x, e) && c->engine->wait(c, &x, e);
}

static inline bool ls_comm_receive_now(LsComm *c, int peer, uint32_t tag, void *data, int64_t bytes,
                                       LsError *e)
{
    LsTransfer x;
    return c->engine->receive(c, peer, tag, data, bytes, &x, e) && c->engine->wait(c, &x, e);
}

#endif
