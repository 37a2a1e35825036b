/* scheduler/order/edited_order.h -- a sequence of runs under change: cost and live peak after every insertion
 * and removal, in O(operands * log runs) each.
 *
 * The meaning of a sequence is that of liveness.h. Every tensor has a list of events, its writes and
 * reads in the order of the runs; an instance is a write with the reads up to the next write.
 * Runs lie in slots with gaps between them, and a maximum tree over the slots has the bytes in
 * use. */
#ifndef LS_SCHEDULER_ORDER_EDITED_ORDER_H
#define LS_SCHEDULER_ORDER_EDITED_ORDER_H

#include "scheduler/algorithms/range_max_tree.h"
#include "scheduler/order/liveness.h"

enum { LS_TAPE_END = 0 };       /* the run behind the last one */

typedef struct LsTapeRun {
    uint32_t node;              /* LS_NO_ID: free */
    uint32_t prev, next;        /* LS_TAPE_END on both sides of the tape */
    int64_t saved;              /* bytes of results that lie in the place of operands */
    bool dirty;                 /* that is to be found anew */
} LsTapeRun;

typedef struct LsTapeList {
    uint32_t *event, n, room;   /* 2 run + is a write */
    uint32_t writes;            /* among them */
} LsTapeList;

typedef struct LsTapeChange { uint32_t run, node, before; bool insert; } LsTapeChange;

typedef struct LsTape {
    const LsProb *p;
    LsArena *arena;             /* the tape's own */
    LsRows reads, writes;       /* by node: tensors in the arena, and persistent ones that are
                                 * updated: by another node, by this one */
    bool *guard;                /* by tensor: persistent and updated: reads come before the write */
    LsTapeList *list;           /* by tensor */
    LsTapeRun *run; uint32_t nrun, room, free;      /* free: chained by next; LS_TAPE_END: none */
    uint32_t *slot;             /* by run; of LS_TAPE_END: behind all of them */
    uint32_t *count;            /* by node: its runs on the tape */
    uint32_t *at;               /* by slot: run, or LS_TAPE_END */
    uint64_t *full;             /* by slot, a bit: a run is there */
    LsPeakTree tree;
    int64_t *fill;              /* scratch of as many numbers as there are slots, plus one */
    LsTapeChange *change; uint32_t nchange, change_room;
    uint32_t *dirty, ndirty, dirty_room;
    uint32_t *taken, stamp;     /* by tensor: operand or result of the pair last looked at */
    uint64_t *work;             /* what was done with it, as search_limit.h counts it; the owner clears
                                 * it */
    uint32_t n;                 /* runs on the tape */
    uint32_t bad;               /* reads of what was not made, or is updated already */
    double cost;
} LsTape;

LsTape *ls_tape_new(const LsProb *p);
void ls_tape_free(LsTape *t);

/* Puts seq on the tape instead of what is there. */
void ls_tape_load(LsTape *t, const LsSeq *seq);
/* Writes the runs to seq->node, which has room for t->n. */
void ls_tape_store(const LsTape *t, LsSeq *seq);

/* A new run of `node` in front of run `before`. */
uint32_t ls_tape_insert(LsTape *t, uint32_t node, uint32_t before);
void ls_tape_remove(LsTape *t, uint32_t run);

/* Takes back all changes but the first `mark` (t->nchange at the time); clearing nchange makes
 * them final. */
void ls_tape_undo(LsTape *t, uint32_t mark);

/* Live bytes; also of a tape with bad reads, which count as nothing. */
static inline int64_t ls_tape_peak(const LsTape *t)
{
    return t->n > 0 ? ls_peak_tree_max(&t->tree) : 0;
}
/* The first run with the peak; the tape is not empty. */
static inline uint32_t ls_tape_peak_run(const LsTape *t)
{
    return t->at[ls_peak_tree_top(&t->tree)];
}

/* The run in `slot`, or the next one behind it. */
uint32_t ls_tape_run_from(const LsTape *t, uint32_t slot);

/* Events of `tensor` in front of run `run`. */
uint32_t ls_tape_events_before(const LsTape *t, uint32_t tensor, uint32_t run);

static inline uint32_t ls_tape_event_run(const LsTape *t, uint32_t tensor, uint32_t k)
{
    return t->list[tensor].event[k] / 2;
}
static inline bool ls_tape_event_writes(const LsTape *t, uint32_t tensor, uint32_t k)
{
    return t->list[tensor].event[k] % 2;
}

/* The run that made what `run` reads (would read) of the tensor; LS_TAPE_END: none did. */
uint32_t ls_tape_maker(const LsTape *t, uint32_t tensor, uint32_t run);

/* Whether an instance of the tensor is in memory when `run` starts, as things are. */
bool ls_tape_has(const LsTape *t, uint32_t tensor, uint32_t run);

/* Whether the run cannot go, whatever becomes of its results: it changes state, or is the only one of
 * a node that must run. */
bool ls_tape_must_stay(const LsTape *t, uint32_t run);

/* Nobody reads what the run makes before it is made again, and nothing wants it in the end. */
bool ls_tape_is_dead(const LsTape *t, uint32_t run);

#endif
