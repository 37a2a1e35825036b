/* scheduler/candidates/pareto_front.h -- the Pareto front of sequences in peak and cost. */
#ifndef LS_SCHEDULER_CANDIDATES_PARETO_FRONT_H
#define LS_SCHEDULER_CANDIDATES_PARETO_FRONT_H

#include "scheduler/order/edited_order.h"

typedef struct LsFrontItem {
    double cost;
    int64_t peak;               /* bytes */
    LsSeq seq;
    uint32_t room;              /* of seq.node */
} LsFrontItem;

/* All zeros: empty. After the n items come `nspare` unused ones whose seq.node is reused. */
typedef struct LsFront {
    LsArena *arena;
    LsFrontItem *item; uint32_t n, room;    /* by rising cost, hence by falling peak */
    uint32_t nspare;
} LsFront;

/* Copies the sequence on the tape unless an item of the front dominates it. The sequence must be
 * valid. */
void ls_front_offer(LsFront *f, const LsTape *t);

/* Offers all items of another front and empties that front. */
void ls_front_move(LsFront *f, LsFront *from);

/* Returns the cheapest sequence with a peak of at most `most` bytes, or NULL. */
const LsFrontItem *ls_front_best(const LsFront *f, int64_t most);

/* Returns the sequence of least peak; the front must not be empty. */
static inline const LsFrontItem *ls_front_least(const LsFront *f) { return &f->item[f->n - 1]; }

void ls_front_free(LsFront *f);

#endif
