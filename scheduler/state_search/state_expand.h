/* scheduler/state_search/state_expand.h -- expands a state by the steps that may come before it. */
#ifndef LS_SCHEDULER_STATE_SEARCH_STATE_EXPAND_H
#define LS_SCHEDULER_STATE_SEARCH_STATE_EXPAND_H

#include "scheduler/state_search/state_table.h"

/* Expands state k and closes it. fresh[0 .. nfresh) are then the states that were reached at less
 * cost than before. */
void ls_tails_expand(LsTails *t, uint32_t k);

#endif
