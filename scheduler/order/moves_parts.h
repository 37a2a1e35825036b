/* scheduler/order/moves_parts.h -- what moves are made of: a tape with random numbers and a target, and the
 * steps that several moves have in common. */
#ifndef LS_SCHEDULER_ORDER_MOVES_PARTS_H
#define LS_SCHEDULER_ORDER_MOVES_PARTS_H

#include "scheduler/algorithms/search_limit.h"
#include "scheduler/order/edited_order.h"

typedef struct LsMoves {
    LsTape *t;
    const LsProb *p;
    uint64_t rnd;               /* state of the generator; never 0 */
    int64_t target;             /* bytes to come down to */
    bool swaps;                 /* some node has an alternative */
    const uint32_t *wanted; uint32_t nwanted;       /* outputs of the graph in the arena */
    uint32_t *mark, stamp;      /* by node */
    uint32_t *stack; uint32_t stack_room;
} LsMoves;

LsMoves *ls_moves_new(LsArena *arena, LsTape *t);

/* A number below n; n > 0. */
uint32_t ls_moves_random(LsMoves *m, uint32_t n);
/* What the Metropolis rule lets an energy rise by this time: a random number of mean `heat`. */
double ls_moves_rise(LsMoves *m, double heat);

/* Cost, and `weight` for every byte above the target at the peak and an eighth at every run. */
double ls_moves_energy(const LsMoves *m, double weight);

/* Counts the tape's work towards the limit; whether that is over. */
bool ls_moves_out_of_time(LsMoves *m, LsLimit *limit);

/* Whether so much has been done since it was counted last that a search should count before its
 * next step: steps of graphs with wide kernels. */
bool ls_moves_worked_long(const LsMoves *m);

/* Runs the node once more in front of run `before`, and removes what nobody needs then. */
uint32_t ls_moves_run_again(LsMoves *m, uint32_t node, uint32_t before);

enum { LS_MOVES_DEEP = 60 };    /* runs that making one tensor again may take */

/* A random run, by its place among the slots; LS_TAPE_END behind the last. */
uint32_t ls_moves_any_run(LsMoves *m, uint32_t slot);

/* A random run above the target; the first with the peak where none is. */
uint32_t ls_moves_high_run(LsMoves *m);

/* A random tensor that is in memory at the run but not used by it: *x, and the next run that
 * wants it (LS_TAPE_END: the graph does). false: none was found. */
bool ls_moves_find_idle(LsMoves *m, uint32_t run, uint32_t *x, uint32_t *next);

/* The runs that read what the run wrote to x, by rising slots; how many, or most + 1. reader has
 * room for most + 1. */
uint32_t ls_moves_readers(const LsTape *t, uint32_t run, uint32_t x, uint32_t most,
                          uint32_t *reader);

/* Puts the runs whose results the run reads on m->stack, which has *n. */
void ls_moves_push_makers(LsMoves *m, uint32_t *n, uint32_t run);
/* Removes the n runs on m->stack that are dead, and what dies with them. */
void ls_moves_sweep(LsMoves *m, uint32_t n);

/* Puts off the updates of what the run reads that come before it. */
void ls_moves_put_off_updates(LsMoves *m, uint32_t run);

/* Whether to make u again rather than hold it, for a node that makes x. */
bool ls_moves_worth_again(LsMoves *m, uint32_t u, uint32_t x);

/* Cost of having x again before the run; negative if it cannot be or is `most` or more. */
double ls_moves_price_again(LsMoves *m, uint32_t x, uint32_t before, double most);

/* Has x in memory before the run: anew, operands first; or, where that is not allowed, by holding
 * what there was. left: runs that may still be added. */
bool ls_moves_make_again(LsMoves *m, uint32_t x, uint32_t before, int *left);

#endif
