/* scheduler/front.h -- sequences that no other of the front beats in both peak and cost. */
#ifndef LS_SCHEDULER_FRONT_H
#define LS_SCHEDULER_FRONT_H

#include "scheduler/tape.h"

typedef struct LsFrontItem {
    double cost;
    int64_t peak;               /* bytes */
    LsSeq seq;                  /* node: from malloc */
} LsFrontItem;

typedef struct LsFront {
    LsFrontItem *item; uint32_t n, room;    /* by rising cost, so by falling peak */
} LsFront;

/* Whether a sequence of this cost and peak would come in. */
bool ls_front_takes(const LsFront *f, double cost, int64_t peak);

/* Copies what is on the tape if it comes in; it is valid. */
void ls_front_offer(LsFront *f, const LsTape *t);

/* The cheapest sequence with a peak of at most `most`, or NULL. */
const LsFrontItem *ls_front_best(const LsFront *f, int64_t most);

void ls_front_free(LsFront *f);

#endif
