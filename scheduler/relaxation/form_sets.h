/* scheduler/relaxation/form_sets.h -- form sets: the need for one value in several forms, when
 * alternatives of a group read different tensors.
 *
 * Example: "conv2 computing relu1" reads the operand of relu1, conv2 reads the result of relu1. The
 * two have no tensor in common, but one of the two tensors must be live whichever kernel runs; if
 * neither is, the operand of relu1 must be made. A form set is a root and further tensors; all
 * members of each further tensor's maker read a tensor of the set. So from any point where none of
 * the set is live, a schedule first makes the root. */
#ifndef LS_SCHEDULER_RELAXATION_FORM_SETS_H
#define LS_SCHEDULER_RELAXATION_FORM_SETS_H

#include "scheduler/relaxation/group_graph_types.h"

/* Finds the form sets of b, and appends to each group's row of b->in the sets of which every member
 * reads a tensor. All fields of b up to `in` must be set. */
void ls_bound_find_forms(LsBoundGraph *b);

#endif
