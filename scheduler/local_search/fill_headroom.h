/* scheduler/local_search/fill_headroom.h -- fills the room that a search leaves below its target. */
#ifndef LS_SCHEDULER_LOCAL_SEARCH_FILL_HEADROOM_H
#define LS_SCHEDULER_LOCAL_SEARCH_FILL_HEADROOM_H

#include "scheduler/local_search/annealing.h"

/* What is on the tape is within the target: makes something again that is kept at the turn from
 * forward to backward, and takes back runs that are dearer together and need no more room, as long
 * as that can be done. Offers the result to the front. Nothing for graphs without a backward
 * part. */
void ls_exchange(LsAnneal *s);

#endif
