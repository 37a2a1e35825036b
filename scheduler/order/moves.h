/* scheduler/order/moves.h -- small changes of a tape that keep it a valid sequence.
 *
 * Every move returns false when it could not be made; the tape may then be anything: the caller
 * undoes it. A move that was made may still leave bad reads (t->bad > 0), which the caller takes
 * for a failure too. */
#ifndef LS_SCHEDULER_ORDER_MOVES_H
#define LS_SCHEDULER_ORDER_MOVES_H

#include "scheduler/algorithms/search_limit.h"
#include "scheduler/order/edited_order.h"

typedef struct LsMoves {
    LsTape *t;
    LsProb *p;
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

/* Makes a tensor that is idle at the peak anew before it is read next, with what that takes, or
 * lets readers take kernels that do without it: the cheapest per byte of `tries` random choices. */
bool ls_move_relieve(LsMoves *m, uint32_t tries);

/* Makes what a random run reads again in front of it, unless that costs more than `most`. */
bool ls_move_again_for_any(LsMoves *m, double most);
/* Likewise for the next reader of something idle at the peak; all: with what it takes that is not
 * in memory either. */
bool ls_move_again_for_peak(LsMoves *m, double most);
bool ls_move_all_again_for_peak(LsMoves *m, double most);

/* Takes back the run, whose readers go on with what was made before, and all runs that thereby
 * nobody needs. */
bool ls_move_drop(LsMoves *m, uint32_t run);

/* Whether what the run makes has been made before. */
bool ls_moves_can_drop(const LsMoves *m, uint32_t run);

/* A random run that ls_move_drop can take back, or LS_TAPE_END after a few tries. */
uint32_t ls_moves_extra(LsMoves *m);

/* Takes back a random run, and makes room for what that holds in other places, each the best of
 * `tries`. */
bool ls_move_trade(LsMoves *m, uint32_t tries);

/* Moves a random run to another place between what it reads and who reads it; one in two looks
 * at what is idle at the peak. A weight gradient may take its update along. */
bool ls_move_shift(LsMoves *m);

/* Moves a random run to anywhere: readers may go on with something else than before. */
bool ls_move_jump(LsMoves *m);

/* Moves a random run by at most `far` places with the runs on the way that it reads, or that read
 * it; one in two looks at what is idle at the peak. */
bool ls_move_together(LsMoves *m, uint32_t far);

/* Lets an alternative make what a random run makes, or the other way round. */
bool ls_move_swap(LsMoves *m);

/* Lets nobody read a value of a random run: what does takes the cheapest kernels that do without.
 * One such swap alone may only cost; when all are made, nothing needs to make the value. */
bool ls_move_forgo(LsMoves *m);

/* Swaps all runs that an alternative makes for less while the target is kept. true: the limit ended
 * it. */
bool ls_moves_swap_cheaper(LsMoves *m, LsLimit *limit);

#endif
