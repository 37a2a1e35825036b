/* scheduler/state_search/state_table.h -- partial schedules built from their ends, as states of a
 * search.
 *
 * A state is the demand of a schedule's end on its beginning: the tensors that must be live there,
 * and which nodes that must run, or may run only once, run later. Only steps that make such a
 * tensor or run such a node are tried before it, and memory at such a step is known exactly. So the
 * search covers every order of first runs, recomputation, alternatives and in-place reuse. States
 * are kept in a table: equal demands are one state, however it was reached.
 *
 * Dominance: a step that costs only what must be paid anyway and leaves no more live bytes before
 * it is taken at once, and no other step is tried from that state. Taking it later in the search,
 * that is earlier in the schedule, cannot help. */
#ifndef LS_SCHEDULER_STATE_SEARCH_STATE_TABLE_H
#define LS_SCHEDULER_STATE_SEARCH_STATE_TABLE_H

#include "scheduler/order/liveness.h"
#include "scheduler/relaxation/group_graph.h"
#include "scheduler/state_search/inplace_matching.h"

typedef struct LsTail {
    double cost;                /* of the runs that follow, ns; in a search for the least peak:
                                 * bytes */
    double ahead;               /* cost of all that must still run before, once each */
    int64_t bytes;              /* of the tensors that must be live */
    uint32_t then, node;        /* the state that follows, and the node that runs in between */
    bool closed;                /* its steps have been expanded */
} LsTail;

typedef struct LsTailSlot { uint32_t hash, state; } LsTailSlot;     /* state + 1; 0: free */

typedef struct LsTailOptions {
    int64_t budget;             /* bytes; unused with `peak` */
    bool peak;                  /* minimize the peak, not the cost */
    bool track;                 /* states include nodes that must run or run only once; else only
                                 * the tensors */
    bool padded;                /* sizes and in-place pairs as in packing, rounded up */
    const bool *have;           /* by tensor: available at the beginning if asked for; NULL: none */
    const bool *barred;         /* by node: may not run; NULL: none */
} LsTailOptions;

typedef struct LsTails {
    const LsBoundGraph *b;
    const LsDag *dag;
    LsArena *arena;
    LsTailOptions o;
    int64_t *size;              /* by tensor: bytes, 0 if persistent */
    int64_t *workspace, *spare; /* by node: bytes; the most bytes that in-place reuse can save */
    LsInplace *pairs;           /* the pairs that the options allow; NULL: none */
    LsRows asks;                /* by node: tensors in the arena that it reads, each once */
    bool *never;                /* by node: it cannot run, as it reads its own result */
    uint32_t *wide;             /* by node: work of a step above the usual */
    double *price, *group_price;        /* of a run, by node and by group, rounded so that sums are
                                         * exact */
    uint32_t tensors, words;    /* words of a state: for its tensors; in all */
    uint32_t group_words, row;  /* words for the groups that must still run; of both together */
    uint32_t *bit;              /* by node: its bit, after the bits of the tensors, or LS_NO_ID */
    LsRows makers;              /* by tensor: nodes */
    LsRows updaters;            /* by node: the updates that must run after it */
    LsRows readers;             /* by group: the groups that read its results */
    LsRows musts;               /* by group: its nodes that must run */
    uint64_t *behind;           /* by tensor: the groups that must run before it exists; group_words
                                 * each */
    uint64_t *must_behind;      /* by group: the same, with the group itself */
    uint64_t *pulled;           /* groups that may be asked for again although nothing needs them */
    LsTail *tail; uint64_t *word; uint32_t n, room;     /* by state; its bits in `row` words */
    uint64_t work;              /* work of ls_tails_expand, as search_limit.h counts it */
    LsTailSlot *table; uint32_t slots;          /* open addressing */
    uint64_t *next;             /* bits of a state under construction */
    /* For a search that keeps only the best: by groups left, states that rank no better than this
     * are dropped; NULL: all are kept. */
    const double *most;
    double byte_price;          /* see ls_tails_rank */
    uint32_t *pick;             /* nodes to try */
    uint32_t *first, *met, stamp;       /* scratch, by node: its first result that is asked for */
    uint32_t *fresh, nfresh, fresh_room;        /* states that ls_tails_expand reached */
} LsTails;

/* ls_tails_free frees nothing of b. */
LsTails *ls_tails_new(const LsBoundGraph *b, LsTailOptions options);
void ls_tails_free(LsTails *t);

/* Adds the end state of all schedules, or of schedules that only have to run `node` (LS_NO_ID: the
 * graph's outputs). cost: the cost of the end state. */
uint32_t ls_tails_end(LsTails *t, uint32_t node, double cost);

/* The most work of a state when kernels have the usual few operands, results and in-place pairs.
 * Searches limit their number of states; with wide kernels a search ends after the work of as many
 * usual states. */
enum { LS_TAIL_STATE_WORK = 10000 };

/* Returns the number of usual states that a search counts for, from its states and its work. */
static inline uint64_t ls_tails_count(uint64_t states, uint64_t work)
{
    return work / LS_TAIL_STATE_WORK > states ? work / LS_TAIL_STATE_WORK : states;
}

/* Returns whether nothing needs to run before state k. */
bool ls_tails_is_start(const LsTails *t, uint32_t k);

/* Returns the number of groups that must still run before state k. */
uint32_t ls_tails_left(const LsTails *t, uint32_t k);

/* Returns the cost of a state, plus the cost ahead, plus a price for the bytes that it asks for. */
static inline double ls_tails_rank(const LsTails *t, const LsTail *tail)
{
    return tail->cost + tail->ahead + t->byte_price * (double)tail->bytes;
}

/* Returns the runs from state k to the end, in `arena`. */
LsSeq ls_tails_schedule(const LsTails *t, uint32_t k, LsArena *arena);

static inline bool ls_tails_is_given(const LsTails *t, uint32_t tensor)
{
    return t->o.have != NULL && t->o.have[tensor];
}

static inline uint32_t ls_tails_left_of(const LsTails *t, const uint64_t *row)
{
    uint32_t left = 0;
    for (uint32_t j = t->words; j < t->row; j++)
        left += (uint32_t)__builtin_popcountll(row[j]);
    return left;
}

/* Returns the number of the state in t->next; a new state has cost INFINITY. */
uint32_t ls_tails_find(LsTails *t);

#endif
