/* scheduler/order/moves_alternative.h -- moves between a node and the alternatives that make the
 * same. */
#ifndef LS_SCHEDULER_ORDER_MOVES_ALTERNATIVE_H
#define LS_SCHEDULER_ORDER_MOVES_ALTERNATIVE_H

#include "scheduler/order/moves_parts.h"

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

/* Lets an alternative make what a random run makes, or the other way round. */
bool ls_move_swap(LsMoves *m);

/* Lets nobody read a value of a random run: what does takes the cheapest kernels that do without.
 * One such swap alone may only cost; when all are made, nothing needs to make the value. */
bool ls_move_forgo(LsMoves *m);

/* Swaps all runs that an alternative makes for less while the target is kept. true: the limit ended
 * it. */
bool ls_moves_swap_cheaper(LsMoves *m, LsLimit *limit);

#endif
