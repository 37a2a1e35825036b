/* scheduler/candidates/peak_targets.h -- the live peaks that searches aim at.
 *
 * They follow from the graph, not from the budget that is asked for, so plans stay monotone; they
 * lie where people put their budgets. */
#ifndef LS_SCHEDULER_CANDIDATES_PEAK_TARGETS_H
#define LS_SCHEDULER_CANDIDATES_PEAK_TARGETS_H

#include <stdbool.h>

#include "base/arena.h"

typedef struct LsTargets { int64_t *bytes; uint32_t n; } LsTargets;     /* falling */

/* Twentieths of the peak without recomputation, `top`, and of everything once with nothing in
 * place, `store_all`, below `top`; with `fine` also by steps of 6 % of themselves where these
 * are low. */
LsTargets ls_targets(LsArena *arena, int64_t top, int64_t store_all, bool fine);

#endif
