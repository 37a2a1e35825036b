/* scheduler/state_search/state_expand.h -- the steps that may come before a state. */
#ifndef LS_SCHEDULER_STATE_SEARCH_STATE_EXPAND_H
#define LS_SCHEDULER_STATE_SEARCH_STATE_EXPAND_H

#include "scheduler/state_search/state_table.h"

/* Tries the steps before state k: fresh[0 .. nfresh) are the states that are now reached at less
 * cost than before. Closes k. */
void ls_tails_expand(LsTails *t, uint32_t k);

#endif
