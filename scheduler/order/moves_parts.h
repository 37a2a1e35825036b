/* scheduler/order/moves_parts.h -- what moves are made of: for moves.c, moves_reorder.c and moves_alternative.c. */
#ifndef LS_SCHEDULER_ORDER_MOVES_PARTS_H
#define LS_SCHEDULER_ORDER_MOVES_PARTS_H

#include "scheduler/order/moves.h"

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

/* How a tensor is not held up to its next reader: so many readers from there on do without it, as
 * alternatives can, and for the one behind them, if there is any, it is made again. */
typedef struct LsRelief {
    uint32_t next, nswap;
    uint32_t before;            /* a run; LS_MOVES_NOBODY: all readers do without */
} LsRelief;
#define LS_MOVES_NOBODY (UINT32_MAX - 1)

/* Of all such ways the cheapest; negative if there is none below `most`. next: a reader of x, or
 * LS_TAPE_END, the graph's end. */
double ls_moves_price_relief(LsMoves *m, uint32_t x, uint32_t next, double most, LsRelief *way);
bool ls_moves_let_go(LsMoves *m, uint32_t x, const LsRelief *way);

/* Has x in memory before the run: anew, operands first; or, where that is not allowed, by holding
 * what there was. left: runs that may still be added. */
bool ls_moves_make_again(LsMoves *m, uint32_t x, uint32_t before, int *left);

#endif
