/* scheduler/order/moves_alternative.h -- moves between a node and the alternatives with the same
 * results. */
#ifndef LS_SCHEDULER_ORDER_MOVES_ALTERNATIVE_H
#define LS_SCHEDULER_ORDER_MOVES_ALTERNATIVE_H

#include "scheduler/order/moves_parts.h"

/* A way to end a tensor's live range before its next reader: the next `nswap` readers become
 * alternatives that do not read it, and the tensor is recomputed for the reader after those, if
 * there is one. */
typedef struct LsRelief {
    uint32_t next, nswap;
    uint32_t before;            /* the run to recompute for; LS_MOVES_NOBODY: all readers are
                                 * swapped */
} LsRelief;
#define LS_MOVES_NOBODY (UINT32_MAX - 1)

/* Returns the cost of the cheapest such way; negative if none costs less than `most`. next: a
 * reader of x, or LS_TAPE_END, the end of the graph. */
double ls_moves_price_relief(LsMoves *m, uint32_t x, uint32_t next, double most, LsRelief *way);
bool ls_moves_let_go(LsMoves *m, uint32_t x, const LsRelief *way);

/* Replaces a random run by an alternative with the same results, or an alternative by its node. */
bool ls_move_swap(LsMoves *m);

/* Replaces all readers of a value of a random run by the cheapest kernels that do not read it. One
 * such swap alone may only cost; after all of them no run has to make the value. */
bool ls_move_forgo(LsMoves *m);

/* Replaces runs by cheaper alternatives while the peak stays within the target. Returns true if the
 * limit ended it. */
bool ls_moves_swap_cheaper(LsMoves *m, LsLimit *limit);

#endif
