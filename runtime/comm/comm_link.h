/* runtime/comm/comm_link.h -- messages between two ranks, on a stream of bytes: a pair of sockets
 * or a connection.
 *
 * A message is a head with its tag and length, its bytes, and between machines their check: what
 * changed on the way is no message. Nothing is stored on the way but what the system's buffers
 * hold: a message whose receiver has not named it stays there, and so do those behind it. Only if
 * the receiver waits for one of those, it takes the first ones into memory of its own. */
#ifndef LS_RUNTIME_COMM_COMM_LINK_H
#define LS_RUNTIME_COMM_COMM_LINK_H

#include "runtime/base/run_error.h"
#include "runtime/comm/comm_seal.h"

typedef struct LsLinkMessage {
    struct LsLinkMessage *next;
    unsigned char *data;        /* only read, if it goes out */
    int64_t bytes;
    uint32_t tag;
    bool done;
    bool stored;                /* arrived before it was named: data is the link's own */
    struct LsLinkMessage *named;    /* of a stored one that is not complete: who takes it */
} LsLinkMessage;

typedef struct LsLinkHead { uint32_t mark, tag; int64_t bytes; uint64_t check; } LsLinkHead;

/* One direction of a link. */
typedef struct LsLinkWay {
    LsLinkHead head;
    int64_t at;                 /* bytes of the message, with its head and check, that have gone or
                                 * come */
    uint64_t number;            /* messages before it */
    uint64_t hides, check;      /* comm_seal.h: of its bytes */
    LsSealSum sum;
    int64_t summed;             /* bytes in it; they may not have gone yet */
} LsLinkWay;

typedef struct LsLink {
    int rank, peer;             /* for messages */
    int out, in;                /* descriptors, which do not block; the same one, but in a rank's
                                 * link to itself */
    LsSeal seal;                /* of messages; not on: they have no checks */
    LsLinkMessage *going;           /* oldest first */
    LsLinkMessage *wanted, *stored; /* oldest first */
    LsLinkMessage *coming;          /* NULL: no head, or nobody wants the message */
    LsLinkWay to, from;
    bool closed;                /* by the peer, or broken: nothing more comes or goes */
    int broken;                 /* errno; 0: the peer closed it */
} LsLink;

/* Begins a message. Its fields data, bytes and tag are set. */
void ls_link_send(LsLink *l, LsLinkMessage *m);
/* False: memory is short, or the peer's message has another length. */
bool ls_link_receive(LsLink *l, LsLinkMessage *m, LsError *e);
/* What poll should wait for: POLLIN on `in`, POLLOUT on `out`. */
short ls_link_events(const LsLink *l);
/* Whether some message waits for the peer. */
bool ls_link_waits(const LsLink *l);
/* Moves as many bytes as go at once, up to some limit, and sets `done` of messages that are
 * complete. False as above, or what comes is not what was sent. */
bool ls_link_move(LsLink *l, LsError *e);
/* Frees what was stored, and closes the descriptors. */
void ls_link_close(LsLink *l);

#endif
