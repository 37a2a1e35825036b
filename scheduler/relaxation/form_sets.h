/* scheduler/relaxation/form_sets.h -- the same value in several forms: what is needed when alternatives of
 * a group read different tensors.
 *
 * "conv2 computing relu1" reads what relu1 reads, conv2 reads what relu1 makes: they have no
 * tensor in common, but whichever runs, one of the two must be there, and if neither is, what
 * relu1 reads must be made. A form set is a root and tensors whose makers, all members of each,
 * read one of the set. So the first of them that a schedule makes, from any point where none is
 * live, is the root. */
#ifndef LS_SCHEDULER_RELAXATION_FORM_SETS_H
#define LS_SCHEDULER_RELAXATION_FORM_SETS_H

#include "scheduler/relaxation/group_graph_types.h"

/* Finds the form sets of b and appends to each row of b->in those of which every member of the
 * group reads a tensor. Needs everything of b up to that. */
void ls_bound_find_forms(LsBoundGraph *b);

#endif
