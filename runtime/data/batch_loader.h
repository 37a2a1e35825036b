/* runtime/data/batch_loader.h -- threads that fill a fixed ring of batches ahead of the training
 * loop. */
#ifndef LS_RUNTIME_DATA_BATCH_LOADER_H
#define LS_RUNTIME_DATA_BATCH_LOADER_H

#include "runtime/data/augmenter.h"
#include "runtime/data/poisson_draw.h"
#include "runtime/data/sample_order.h"

#include <pthread.h>

/* The samples that a pass draws for its updates. The batches of an update are those that its
 * samples fill, at least one. */
typedef struct LsDrawn {
    double rate;                /* 0: nothing is drawn */
    LsSecretKey key;
    int64_t first, last;        /* updates */
} LsDrawn;

/* The parts that one rank runs. `group` parts make an update, those of the first one from `origin`
 * on. The parts with samples are counted; a rank runs those from rank * block on, `block` of them.
 * It numbers its own from 0 on, `block` for every update, of which the last ones may be without a
 * part. */
typedef struct LsShare {
    int64_t block;              /* 0: all parts are this process's */
    int64_t rank, group, origin;
} LsShare;

/* The batches of one pass, numbered through all epochs: batch number q is batch q % per_epoch of
 * epoch q / per_epoch. Batches of drawn samples are numbered, too, but belong to no epoch. If
 * batches are cut into parts, the loader's batches and their numbers are those of the parts; the
 * last parts of an epoch may be without samples. */
typedef struct LsPass {
    const LsDataset *data;
    const LsAugmenter *augment; /* of the same data, with a room for each worker, or, without
                                 * workers, for each slot of the ring; NULL: samples are as in the
                                 * data */
    int64_t parts;              /* of a batch, LsDivision.samples samples each; 0, 1: it is not
                                 * cut */
    uint64_t seed;
    bool shuffle;               /* a new order every epoch, fixed by (seed, epoch) */
    bool drop_last;             /* else the last batch of an epoch may count only partly */
    int64_t members;            /* of an ensemble, each with its own batch: as many batches are one;
                                 * 0: one batch */
    int64_t first, end;         /* batches [first, end); of drawn samples: end is not read */
    LsDrawn drawn;
    LsShare share;
    int readers;                /* that each read and release every batch, at most the ring apart;
                                 * 0: 1 */
} LsPass;

typedef struct LsBatch {
    char *input;                /* all inputs, at LsLoader.offset */
    int64_t number, valid;      /* valid: samples that count; the others repeat them. 0 (a part):
                                 * nothing is read. number: -1 if the rank has no such part */
    int64_t *drawn;             /* the samples that count, [batch], of a program with private
                                 * training */
    int64_t epoch;              /* of drawn samples: their update */
    bool last;                  /* of drawn samples: the last batch of its update */
} LsBatch;

typedef struct LsSlot {
    LsBatch batch;
    bool full;
    int64_t number;             /* of the pass; LsBatch.number may be another (LsShare) */
    int left;                   /* readers that have not released it */
    int room;                   /* of LsAugmenter, while the slot is filled; -1: none */
} LsSlot;

typedef struct LsLoader {
    const LsProgram *p;
    int64_t *offset;            /* of each input in a slot, bytes */
    int64_t slot_bytes;
    LsSlot *slot; int nslot;
    LsPass pass;
    int64_t next, taken;        /* next batch to fill; first batch that is not released */
    LsDraw draw;                /* of the next batch to fill */
    int busy;                   /* workers that are filling a batch */
    bool stop;
    LsError error;              /* of batch error_at, the first that failed */
    int64_t error_at;
    pthread_mutex_t lock;
    pthread_cond_t filled, freed;
    pthread_t *thread; int nthread;     /* 0: a batch is filled when it is requested */
    char *memory;               /* one allocation: the ring, offsets, threads, slots, drawn
                                 * samples */
} LsLoader;

/* Whole batches, also if they are cut. */
int64_t ls_batches_per_epoch(const LsPass *pass);
/* Number of samples that count in batch `number`, of a pass that draws nothing; with members, of
 * each. */
int64_t ls_batch_valid(const LsPass *pass, int64_t number);
/* The first of them, of a pass that does not shuffle either. */
int64_t ls_batch_first(const LsPass *pass, int64_t number);
/* The number in all the data of the rank's part `own`; -1: there is none. */
int64_t ls_part_of_rank(const LsPass *pass, int64_t own);
/* Whether the reals of a batch are finite (ls_dataset_is_finite); likewise. */
bool ls_batch_is_finite(const LsPass *pass, int64_t number, LsError *e);
/* Slots of the ring, and bytes of all. */
static inline int ls_ring_slots(const LsProgram *p)
{
    return p->bytes.ring > 0 ? p->bytes.ring : LS_RING;
}
int64_t ls_ring_bytes(const LsProgram *p);

bool ls_loader_open(LsLoader *l, const LsProgram *p, int workers, LsError *e);
void ls_loader_close(LsLoader *l);
/* Starts a pass; ends the pass before, even if it is not finished. */
void ls_loader_begin(LsLoader *l, const LsPass *pass);
/* Waits for the next batch, which stays valid until ls_loader_release. NULL with an error, or at
 * the end of the pass. */
const LsBatch *ls_loader_next(LsLoader *l, LsError *e);
void ls_loader_release(LsLoader *l);
/* The same for one of several readers, which are threads: batch `number` of the pass, which must
 * release each batch once. */
const LsBatch *ls_loader_at(LsLoader *l, int64_t number, LsError *e);
void ls_loader_done(LsLoader *l, int64_t number);

#endif
