/* scheduler/candidates/peak_targets.h -- the live peaks that searches aim at.
 *
 * The targets follow from the graph, not from the budget asked for, so plans stay monotone. They
 * lie where people put their budgets. */
#ifndef LS_SCHEDULER_CANDIDATES_PEAK_TARGETS_H
#define LS_SCHEDULER_CANDIDATES_PEAK_TARGETS_H

#include <stdbool.h>

#include "base/arena.h"

typedef struct LsTargets { int64_t *bytes; uint32_t n; } LsTargets;     /* falling */

/* Returns, below `top`, the twentieths of `top`, the peak without recomputation, and of
 * `store_all`, the peak of every node once without in-place reuse. With `fine` low targets also
 * come in steps of 6 % of themselves. */
LsTargets ls_targets(LsArena *arena, int64_t top, int64_t store_all, bool fine);

#endif
