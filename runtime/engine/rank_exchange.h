/* runtime/engine/rank_exchange.h -- what ranks tell each other in an update: they add up the sums of their blocks of parts,
 * update slices of the parameters or whole ones, and see each other's losses and statistics.
 *
 * A bucket is a run of sums (LsRanks) that become complete one after the other. As soon as a rank's bucket is complete, its
 * slices are on their way to their owners, while the backward part goes on. The owner of a slice adds what the ranks sent in
 * the order of runtime/kernels/ls_tree.h, so neither buckets nor engines nor the number of ranks change a bit.
 *
 * Ranks that are processes of one machine have their sums in memory that all of them see, a window. Then messages say only
 * that bytes are there, and whoever needs them reads them in their place. A rank's sums are read by others until these have
 * said that their slices of the bucket are done. */
#ifndef LS_RUNTIME_ENGINE_RANK_EXCHANGE_H
#define LS_RUNTIME_ENGINE_RANK_EXCHANGE_H

#include "runtime/comm/comm.h"
#include "runtime/engine/engine_parts.h"
#include "runtime/engine/rank_packets.h"

/* bytes [at, at + size) of the sums; sums [first, end) of LsRanks */
typedef struct LsBucket {
    int64_t at, size;
    int64_t sliced;             /* bytes of the buckets before it whose updates are sliced */
    uint32_t first, end;
    uint32_t after;             /* the step that completes it, and begins its exchange; LS_NO_STEP: that begins after all steps */
    bool whole;                 /* every rank needs the sum */
} LsBucket;
enum { LS_BUCKET = 4 << 20 };   /* bytes of a bucket by default */
#define LS_NO_STEP UINT32_MAX

/* bytes: least size of a bucket, but for the last; 0: LS_BUCKET. late: no exchange begins before the end of the backward
 * part. */
typedef struct LsBucketing { int64_t bytes; bool late; } LsBucketing;
/* Makes the buckets of a program; to: room for r->nsum. Returns their number. */
uint32_t ls_buckets_make(const LsRanks *r, LsBucketing how, LsBucket *to);

typedef struct LsExchange {
    const LsRanks *r;           /* NULL: the program has no ranks */
    LsEngine *g;
    LsComm *comm;               /* NULL: one rank alone */
    int rank, size;
    int64_t block;              /* parts of an update that a rank runs */
    LsBucket *bucket; uint32_t nbucket;
    char *sums;                 /* in the program's state */
    char *slices;               /* LsMemory.slice */
    char *window;               /* the sums of all ranks, one behind the other, in memory that all see; NULL: there is none */
    char *chunk;                /* of the sums of a slice, for the update that reads it */
    char *arrived;              /* slices of other ranks; without a window */
    LsPackets packets;          /* losses of parts, with their statistics */
    LsTransfer *sent, *got;     /* by bucket and rank */
    bool *slice_step;           /* by step of the phase `update`: it belongs to a sum */
    int64_t parts;              /* of the update under way, with samples */
    uint32_t begun;             /* buckets on their way */
    bool collects;              /* views of sliced state gather it from all ranks */
    LsError error;              /* the first failure in a hook or a view */
} LsExchange;

/* comm: NULL, or m->ranks ranks; the caller closes it before. window:
 * memory of all ranks of this machine, with this rank's sums (LsMemory.sums) in their place; NULL: ranks send each other all
 * bytes. */
bool ls_exchange_open(LsExchange *x, LsEngine *g, LsMemory *m, LsComm *comm, char *window, LsBucketing how, LsError *e);
void ls_exchange_close(LsExchange *x);
/* Whether all ranks are at the same place of the run (rank_packets.h). */
bool ls_exchange_agree(LsExchange *x, uint64_t place, LsError *e);

/* An update with so many parts with samples, of which this rank runs its block. */
void ls_exchange_start(LsExchange *x, int64_t parts);
/* For the run of the rank's last part. */
LsHook ls_exchange_hook(LsExchange *x);
/* Notes the loss of this rank's part j, from 0. */
void ls_exchange_note(LsExchange *x, int64_t j, LsLoss loss);
/* Completes the sums and runs the phase `update`. place, stop: see rank_packets.h. */
bool ls_exchange_finish(LsExchange *x, uint64_t place, int stop, LsError *e);
/* Afterwards: the loss of part k of all ranks; the largest `stop`. */
LsLoss ls_exchange_loss(const LsExchange *x, int64_t k);
int ls_exchange_stop(const LsExchange *x);

/* Rank 0 reads state that has slices between _collect and _release; all other ranks call _serve meanwhile. */
void ls_exchange_collect(LsExchange *x);
bool ls_exchange_release(LsExchange *x, LsError *e);
bool ls_exchange_serve(LsExchange *x, LsError *e);

/* ---- for rank_exchange.c and rank_collect.c ---- */
/* Tags of messages. A bucket's sums and slices have tags from LS_TAG_BUCKETS on. */
enum { LS_TAG_PACKET, LS_TAG_ASK, LS_TAG_PIECE, LS_TAG_BUCKETS };

static inline int64_t ls_slice_bytes(const LsExchange *x, const LsBucket *b) { return b->size / x->size; }

static inline bool ls_rank_send(LsExchange *x, int rank, uint32_t tag, const void *data, int64_t bytes, LsTransfer *t, LsError *e)
{
    return x->comm->engine->send(x->comm, rank, tag, data, bytes, t, e);
}

static inline bool ls_rank_take(LsExchange *x, int rank, uint32_t tag, void *data, int64_t bytes, LsTransfer *t, LsError *e)
{
    return x->comm->engine->receive(x->comm, rank, tag, data, bytes, t, e);
}

static inline bool ls_rank_wait(LsExchange *x, LsTransfer *t, LsError *e) { return x->comm->engine->wait(x->comm, t, e); }

typedef struct LsRange { int64_t from, to; } LsRange;       /* bytes of the sums */

/* What rank q's slice of bucket b has of a sum; empty: from >= to. */
static inline LsRange ls_slice_of_sum(const LsExchange *x, const LsBucket *b, const LsRankSum *s, int q)
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
