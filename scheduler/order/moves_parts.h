/* scheduler/order/moves_parts.h -- the shared parts of moves: a tape with random numbers and a
 * target, and the steps that several moves use. */
#ifndef LS_SCHEDULER_ORDER_MOVES_PARTS_H
#define LS_SCHEDULER_ORDER_MOVES_PARTS_H

#include "scheduler/algorithms/search_limit.h"
#include "scheduler/order/edited_order.h"

typedef struct LsMoves {
    LsTape *t;
    const LsProb *p;
    uint64_t rnd;               /* state of the generator; never 0 */
    int64_t target;             /* peak memory to reach, bytes */
    bool swaps;                 /* some node has an alternative */
    const uint32_t *wanted; uint32_t nwanted;       /* outputs of the graph in the arena */
    uint32_t *mark, stamp;      /* by node */
    uint32_t *stack; uint32_t stack_room;
} LsMoves;

LsMoves *ls_moves_new(LsArena *arena, LsTape *t);

/* Returns a random number below n; n > 0. */
uint32_t ls_moves_random(LsMoves *m, uint32_t n);
/* Returns how much the energy may rise this time by the Metropolis rule: a random number of mean
 * `heat`. */
double ls_moves_rise(LsMoves *m, double heat);

/* Returns the cost, plus `weight` per byte above the target at the peak and an eighth of it per
 * byte above at every run. */
double ls_moves_energy(const LsMoves *m, double weight);

/* Counts the tape's work towards the limit; returns whether the limit is reached. */
bool ls_moves_out_of_time(LsMoves *m, LsLimit *limit);

/* Returns whether the uncounted work is so large that a search should count it before its next
 * step. Graphs with wide kernels have such steps. */
bool ls_moves_worked_long(const LsMoves *m);

/* Inserts another run of the node in front of run `before`, and removes the runs that become
 * dead. */
uint32_t ls_moves_run_again(LsMoves *m, uint32_t node, uint32_t before);

enum { LS_MOVES_DEEP = 60 };    /* most runs that recomputing one tensor may take */

/* Returns a random run, by its place among the slots; LS_TAPE_END behind the last. */
uint32_t ls_moves_any_run(LsMoves *m, uint32_t slot);

/* Returns a random run whose live bytes exceed the target; if there is none, the first run at the
 * peak. */
uint32_t ls_moves_high_run(LsMoves *m);

/* Finds a random tensor *x that is live at the run but not used by it, and the next run that reads
 * it (LS_TAPE_END: x is an output). Returns false if none was found. */
bool ls_moves_find_idle(LsMoves *m, uint32_t run, uint32_t *x, uint32_t *next);

/* Writes to `reader` (room for most + 1) the runs that read the instance of x that the run made, by
 * rising slots. Returns their number, or most + 1. */
uint32_t ls_moves_readers(const LsTape *t, uint32_t run, uint32_t x, uint32_t most,
                          uint32_t *reader);

/* Pushes the runs whose results the run reads on m->stack, which holds *n runs. */
void ls_moves_push_makers(LsMoves *m, uint32_t *n, uint32_t run);
/* Removes the dead runs among the n on m->stack, and the runs that become dead with them. */
void ls_moves_sweep(LsMoves *m, uint32_t n);

/* Moves updates of tensors that the run reads from before the run to after it. */
void ls_moves_put_off_updates(LsMoves *m, uint32_t run);

/* Returns whether to recompute u rather than hold it, for a node that makes x. */
bool ls_moves_worth_again(LsMoves *m, uint32_t u, uint32_t x);

/* Returns the cost of recomputing x before the run; negative if that is impossible or costs `most`
 * or more. */
double ls_moves_price_again(LsMoves *m, uint32_t x, uint32_t before, double most);

/* Brings x into memory before the run: recomputes it, operands first, or holds the old instance
 * where recomputation is not allowed. left: runs that may still be added. */
bool ls_moves_make_again(LsMoves *m, uint32_t x, uint32_t before, int *left);

#endif
