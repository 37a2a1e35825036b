/* runtime/ranks/rank_exchange_parts.h -- the state of an exchange between ranks, and what its files
 * share: rank_exchange.c (see rank_exchange.h), buckets.c, rank_device.c, device_update.c and
 * collect_slices.c. */
#ifndef LS_RUNTIME_RANKS_RANK_EXCHANGE_PARTS_H
#define LS_RUNTIME_RANKS_RANK_EXCHANGE_PARTS_H

#include "runtime/comm/comm.h"
#include "runtime/engine/device_ranks.h"
#include "runtime/engine/engine_parts.h"
#include "runtime/ranks/rank_packets.h"

/* bytes [at, at + size) of the sums; sums [first, end) of LsRanks */
typedef struct LsBucket {
    int64_t at, size;
    int64_t sliced;             /* bytes of the buckets before it whose updates are sliced */
    uint32_t first, end;
    uint32_t after;             /* the step that completes it, and begins its exchange; LS_NO_STEP:
                                 * that begins after all steps */
    bool whole;                 /* every rank needs the sum */
} LsBucket;
enum { LS_BUCKET = 4 << 20 };   /* bytes of a bucket by default */
#define LS_NO_STEP UINT32_MAX

/* bytes: least size of a bucket, but for the last; 0: LS_BUCKET. late: no exchange begins before
 * the end of the backward part. */
typedef struct LsBucketing { int64_t bytes; bool late; } LsBucketing;

typedef struct LsExchange {
    const LsRanks *r;           /* NULL: the program has no ranks */
    LsEngine *g;
    LsComm *comm;               /* NULL: one rank alone */
    LsComm *bulk;               /* carries buckets: comm, or an engine for messages in devices'
                                 * memory */
    int rank, size;
    int64_t block;              /* parts of an update that a rank runs */
    LsBucket *bucket; uint32_t nbucket;
    char *sums;                 /* in the program's state, or in `view` */
    char *slices;               /* LsMemory.slice */
    char *window;               /* the sums of all ranks, one behind the other, in memory that all
                                 * see; NULL: there is none */
    char *chunk;                /* of the sums of a slice, for the update that reads it */
    char *arrived, *own_arrived;        /* slices of other ranks; without a window. own_: to be
                                         * freed */
    LsPackets packets;          /* losses of parts, with their statistics */
    LsPackets replicas;         /* hashes of the state that all ranks have alike */
    LsTransfer *sent, *got;     /* by bucket and rank */
    bool *slice_step;           /* by step of the phase `update`: it belongs to a sum */
    int64_t parts;              /* of the update under way, with samples */
    uint32_t begun;             /* buckets on their way */
    bool collects;              /* views of sliced state gather it from all ranks */
    char *view, *own_view;      /* where they bring it, on the host: the place of the sums, or a
                                 * copy of it. own_: to be freed */
    /* Of a program for a device (rank_device.h); d NULL: there is none. */
    LsDevice *d; const LsDeviceRanks *on;
    char *there;                /* the sums on the device */
    bool staged;                /* buckets go through the host's memory */
    LsRunSet *set;              /* by sum: numbers for the update of its slice */
    void *pinned;               /* host memory; NULL: none */
    uint32_t *cut, *cut_end, ncut;      /* steps of the last part behind which buckets are complete;
                                         * and the end of these buckets */
    uint32_t noted;             /* buckets whose end the device has noted in this update */
    LsError error;              /* the first failure in a hook or a view */
} LsExchange;

/* Tags of messages. A bucket's sums and slices have tags from LS_TAG_BUCKETS on. */
enum { LS_TAG_PACKET, LS_TAG_ASK, LS_TAG_PIECE, LS_TAG_REPLICAS, LS_TAG_BUCKETS };

enum { LS_REPLICAS_PACKET = 24 };       /* bytes: place, stop, hash */

static inline int64_t ls_slice_bytes(const LsExchange *x, const LsBucket *b)
{
    return b->size / x->size;
}

typedef struct LsRange { int64_t from, to; } LsRange;       /* bytes of the sums */

/* What rank q's slice of bucket b has of a sum; empty: from >= to. */
static inline LsRange ls_slice_of_sum(const LsExchange *x, const LsBucket *b, const LsRankSum *s,
                                      int q)
{
    const int64_t from = b->at + q * ls_slice_bytes(x, b), to = from + ls_slice_bytes(x, b);
    const int64_t end = s->at + s->count * x->g->p->real_bytes;
    return (LsRange){from > s->at ? from : s->at, to < end ? to : end};
}

/* Where a rank's own sliced state has the byte `at` of the sums, in bucket b, of kind 0. */
static inline int64_t ls_slice_place(const LsExchange *x, const LsBucket *b, int64_t at)
{
    return b->sliced / x->size + at - b->at - x->rank * ls_slice_bytes(x, b);
}

static inline char *ls_slice_state(const LsExchange *x, int64_t kind, int64_t place)
{
    return x->slices + kind * (x->r->slice_bytes / x->size) + place;
}

/* Of LsSlices. */
void ls_exchange_view(void *self, int64_t offset);
void ls_exchange_store(void *self, int64_t offset);

#endif
