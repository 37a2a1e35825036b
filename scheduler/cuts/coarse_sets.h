/* scheduler/cuts/coarse_sets.h -- lower sets of large forward graphs: those that leave light
 * vertices with what they follow. */
#ifndef LS_SCHEDULER_CUTS_COARSE_SETS_H
#define LS_SCHEDULER_CUTS_COARSE_SETS_H

#include "scheduler/lower_sets/lower_set.h"

/* A vertex lighter than `light` ns, all of whose operands come from one group, joins that group.
 * Returns the lower sets of the groups as lower sets of f; NULL: there are more than `most`. ns: by
 * vertex. */
LsFamily *ls_coarse_sets(LsArena *arena, const LsForward *f, const double *ns, double light,
                         uint32_t most);

#endif
