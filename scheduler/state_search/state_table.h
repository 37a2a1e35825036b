/* scheduler/state_search/state_table.h -- schedules seen from their ends, for searches that try many of them.
 *
 * A state is what the rest of a schedule asks of its beginning: the tensors that must be live
 * then, and which of the nodes that must run, or may run only once, run later. Every step before
 * is worth a thought only if it makes one of the tensors or is one of the nodes, and memory at it
 * is known exactly; so the order of first runs, recomputations, alternatives and in-place reuse
 * are all tried, and nothing else is. States are kept in a table: what asks for the same is one
 * state, however it was reached.
 *
 * A step that costs nothing more than must be paid anyway and leaves no more live before it than
 * there was is taken at once, and nothing else is tried from there: putting it where it would have
 * come later in the search, that is earlier in the schedule, helps nothing. */
#ifndef LS_SCHEDULER_STATE_SEARCH_STATE_TABLE_H
#define LS_SCHEDULER_STATE_SEARCH_STATE_TABLE_H

#include "scheduler/order/liveness.h"
#include "scheduler/relaxation/group_graph.h"
#include "scheduler/state_search/inplace_matching.h"

typedef struct LsTail {
    double cost;                /* of what follows, ns; searching for the least peak: bytes */
    double ahead;               /* of all that must still run before, once each */
    int64_t bytes;              /* that it asks for */
    uint32_t then, node;        /* the state that follows, and what runs between them */
    bool closed;                /* its steps have been tried */
} LsTail;

typedef struct LsTailSlot { uint32_t hash, state; } LsTailSlot;     /* state + 1; 0: free */

typedef struct LsTailOptions {
    int64_t budget;             /* bytes; with peak: none */
    bool peak;                  /* the least peak in place of the least cost */
    bool track;                 /* also what must run, or only once; else what is asked for alone */
    bool padded;                /* bytes, and what fits in whose place, as plans are packed */
    const bool *have;           /* by tensor: is there at the beginning, if asked for; NULL: none */
    const bool *barred;         /* by node: does not run; NULL: none */
} LsTailOptions;

typedef struct LsTails {
    const LsBoundGraph *b;
    const LsDag *dag;
    LsArena *arena;
    LsTailOptions o;
    int64_t *size;              /* by tensor: bytes, 0 if persistent */
    int64_t *workspace, *spare; /* by node: bytes; what in-place reuse spares of them at the most */
    LsInplace *pairs;           /* those that the options allow; NULL: none */
    LsRows asks;                /* by node: tensors in the arena that it reads, each once */
    bool *never;                /* by node: reads what it makes itself, so it cannot run */
    uint32_t *wide;             /* by node: work of a step beyond the usual */
    double *price, *group_price;        /* of a run, by node, by group: such that sums are exact */
    uint32_t tensors, words;    /* words of a state: of its tensors; of all */
    uint32_t group_words, row;  /* of the groups that must still run; of both together */
    uint32_t *bit;              /* by node: its bit behind those of the tensors, or LS_NO_ID */
    LsRows makers;              /* by tensor: nodes */
    LsRows updaters;            /* by node: those that must run after it */
    LsRows readers;             /* by group: those that read what it makes */
    LsRows musts;               /* by group: its nodes that must run */
    uint64_t *behind;           /* by tensor: groups without which it is not; group_words each */
    uint64_t *must_behind;      /* by group: likewise, with itself */
    uint64_t *pulled;           /* groups that may be asked for again though nothing needs them */
    LsTail *tail; uint64_t *word; uint32_t n, room;     /* by state; its bits, `row` words */
    uint64_t work;              /* of ls_tails_expand, as search_limit.h counts it */
    LsTailSlot *table; uint32_t slots;          /* open addressing */
    uint64_t *next;             /* bits of a state under construction */
    /* Of a search that keeps the best alone: what ranks no better than these, by groups left, is
     * not kept; NULL: all is. */
    const double *most;
    double byte_price;          /* see ls_tails_rank */
    uint32_t *pick;             /* nodes to try */
    uint32_t *first, *met, stamp;       /* by node: its first result that is asked for; scratch */
    uint32_t *fresh, nfresh, fresh_room;        /* what ls_tails_expand reached */
} LsTails;

/* Frees nothing of b. */
LsTails *ls_tails_new(const LsBoundGraph *b, LsTailOptions options);
void ls_tails_free(LsTails *t);

/* The end of all schedules, or of those of which nothing is asked but that `node` can run
 * (LS_NO_ID: the graph's outputs); cost: what it counts for. */
uint32_t ls_tails_end(LsTails *t, uint32_t node, double cost);

/* What a state takes at the most where kernels have the usual few operands, results and in-place
 * pairs. Searches count their states; one of wide kernels ends when it has taken the work of as many
 * usual ones. */
enum { LS_TAIL_STATE_WORK = 10000 };

/* States that a search counts for, by the number it tried and its work. */
static inline uint64_t ls_tails_count(uint64_t states, uint64_t work)
{
    return work / LS_TAIL_STATE_WORK > states ? work / LS_TAIL_STATE_WORK : states;
}

/* Whether nothing needs to run before it. */
bool ls_tails_is_start(const LsTails *t, uint32_t k);

/* Groups that must still run before it. */
uint32_t ls_tails_left(const LsTails *t, uint32_t k);

/* Cost of a state with what lies ahead, and a price for the bytes that it asks for. */
static inline double ls_tails_rank(const LsTails *t, const LsTail *tail)
{
    return tail->cost + tail->ahead + t->byte_price * (double)tail->bytes;
}

/* What runs from state k to the end. */
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

/* The number of the state in t->next; a new one has cost INFINITY. */
uint32_t ls_tails_find(LsTails *t);

#endif
