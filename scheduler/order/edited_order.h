/* scheduler/order/edited_order.h -- an editable sequence of runs, the tape: its cost and live peak
 * are known after every insertion and removal, each of which takes O(operands * log runs).
 *
 * liveness.h defines the meaning of a sequence. Every tensor has a list of events, its writes and
 * reads in run order; an instance is a write with the reads up to the next write. Runs lie in slots
 * with gaps between them. A maximum tree over the slots holds the live bytes. */
#ifndef LS_SCHEDULER_ORDER_EDITED_ORDER_H
#define LS_SCHEDULER_ORDER_EDITED_ORDER_H

#include "scheduler/algorithms/range_max_tree.h"
#include "scheduler/order/liveness.h"

enum { LS_TAPE_END = 0 };       /* a sentinel: the run after the last */

typedef struct LsTapeRun {
    uint32_t node;              /* LS_NO_ID: free */
    uint32_t prev, next;        /* LS_TAPE_END on both sides of the tape */
    int64_t saved;              /* bytes that in-place reuse saves: results in the place of
                                 * operands */
    bool dirty;                 /* `saved` is out of date */
} LsTapeRun;

typedef struct LsTapeList {
    uint32_t *event, n, room;   /* 2 run + is a write */
    uint32_t writes;            /* among them */
} LsTapeList;

typedef struct LsTapeChange { uint32_t run, node, before; bool insert; } LsTapeChange;

typedef struct LsTape {
    const LsProb *p;
    LsArena *arena;             /* the tape's own */
    LsRows reads, writes;       /* by node: tensors in the arena that it reads (makes), and
                                 * persistent tensors that another node (it) updates */
    bool *guard;                /* by tensor: persistent and updated, so its reads must come before
                                 * the write */
    LsTapeList *list;           /* by tensor */
    LsTapeRun *run; uint32_t nrun, room, free;      /* free: chained by next; LS_TAPE_END: none */
    uint32_t *slot;             /* by run; LS_TAPE_END has the slot after all others */
    uint32_t *count;            /* by node: number of its runs on the tape */
    uint32_t *at;               /* by slot: run, or LS_TAPE_END */
    uint64_t *full;             /* by slot, one bit: the slot holds a run */
    LsPeakTree tree;
    int64_t *fill;              /* scratch: one number per slot, plus one */
    LsTapeChange *change; uint32_t nchange, change_room;
    uint32_t *dirty, ndirty, dirty_room;
    uint32_t *taken, stamp;     /* scratch, by tensor: operand or result of a pair already taken */
    uint64_t *work;             /* work of all changes, as search_limit.h counts it; the owner
                                 * clears it */
    uint32_t n;                 /* runs on the tape */
    uint32_t bad;               /* reads of a tensor that was never made, or is updated already */
    double cost;
} LsTape;

LsTape *ls_tape_new(const LsProb *p);
void ls_tape_free(LsTape *t);

/* Replaces the contents of the tape by seq. */
void ls_tape_load(LsTape *t, const LsSeq *seq);
/* Writes the runs to seq->node, which has room for t->n. */
void ls_tape_store(const LsTape *t, LsSeq *seq);

/* Inserts a run of `node` in front of run `before`; returns the new run. */
uint32_t ls_tape_insert(LsTape *t, uint32_t node, uint32_t before);
void ls_tape_remove(LsTape *t, uint32_t run);

/* Undoes all changes except the first `mark` (an earlier t->nchange). Clearing nchange makes all
 * changes final. */
void ls_tape_undo(LsTape *t, uint32_t mark);

/* Returns the live peak, bytes. Bad reads may be present and count as nothing. */
static inline int64_t ls_tape_peak(const LsTape *t)
{
    return t->n > 0 ? ls_peak_tree_max(&t->tree) : 0;
}
/* Returns the first run at the peak; the tape must not be empty. */
static inline uint32_t ls_tape_peak_run(const LsTape *t)
{
    return t->at[ls_peak_tree_top(&t->tree)];
}

/* Returns the run in `slot`, or the next run after it. */
uint32_t ls_tape_run_from(const LsTape *t, uint32_t slot);

/* Returns the number of events of `tensor` before run `run`. */
uint32_t ls_tape_events_before(const LsTape *t, uint32_t tensor, uint32_t run);

static inline uint32_t ls_tape_event_run(const LsTape *t, uint32_t tensor, uint32_t k)
{
    return t->list[tensor].event[k] / 2;
}
static inline bool ls_tape_event_writes(const LsTape *t, uint32_t tensor, uint32_t k)
{
    return t->list[tensor].event[k] % 2;
}

/* Returns the run that made the instance of the tensor that `run` reads or would read; LS_TAPE_END:
 * there is none. */
uint32_t ls_tape_maker(const LsTape *t, uint32_t tensor, uint32_t run);

/* Returns whether an instance of the tensor is live when `run` starts. */
bool ls_tape_has(const LsTape *t, uint32_t tensor, uint32_t run);

/* Returns the next read of a tensor that is live when `run` starts but not read by it, or
 * LS_TAPE_END. */
uint32_t ls_tape_next_read(const LsTape *t, uint32_t tensor, uint32_t run);

/* Returns whether the run must stay even if its results are not read: it changes state, or is the
 * only run of a node that must run. */
bool ls_tape_must_stay(const LsTape *t, uint32_t run);

/* Returns whether the run is dead: no run reads its results before they are made again, and they
 * are no outputs at the end. */
bool ls_tape_is_dead(const LsTape *t, uint32_t run);

#endif
