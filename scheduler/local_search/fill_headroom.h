/* scheduler/local_search/fill_headroom.h -- uses the memory that a search leaves free below its
 * target. */
#ifndef LS_SCHEDULER_LOCAL_SEARCH_FILL_HEADROOM_H
#define LS_SCHEDULER_LOCAL_SEARCH_FILL_HEADROOM_H

#include "scheduler/local_search/annealing.h"

/* The tape must be within the target. Recomputes a value that is kept at the turn from forward to
 * backward, and in exchange removes recomputations that cost more together and need no more room;
 * repeats while such an exchange exists. Offers the result to the front. Does nothing for graphs
 * without a backward part. */
void ls_exchange(LsAnneal *s);

#endif
