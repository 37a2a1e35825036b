/* scheduler/candidates/pareto_front.h -- sequences that no other of the front beats in both peak and cost. */
#ifndef LS_SCHEDULER_CANDIDATES_PARETO_FRONT_H
#define LS_SCHEDULER_CANDIDATES_PARETO_FRONT_H

#include "scheduler/order/edited_order.h"

typedef struct LsFrontItem {
    double cost;
    int64_t peak;               /* bytes */
    LsSeq seq;
    uint32_t room;              /* of seq.node */
} LsFrontItem;

/* All zeros: empty. Behind the n items are `nspare` more, whose seq.node will be used again. */
typedef struct LsFront {
    LsArena *arena;
    LsFrontItem *item; uint32_t n, room;    /* by rising cost, so by falling peak */
    uint32_t nspare;
} LsFront;

/* Copies what is on the tape unless something of the front is as good in both; it is valid. */
void ls_front_offer(LsFront *f, const LsTape *t);

/* Offers all of another front, which is empty then. */
void ls_front_move(LsFront *f, LsFront *from);

/* The cheapest sequence with a peak of at most `most`, or NULL. */
const LsFrontItem *ls_front_best(const LsFront *f, int64_t most);

/* The sequence of the least peak; the front is not empty. */
static inline const LsFrontItem *ls_front_least(const LsFront *f) { return &f->item[f->n - 1]; }

void ls_front_free(LsFront *f);

#endif
