/* scheduler/cuts/cut_tensors.h -- who makes and who reads what phase F makes. */
#ifndef LS_SCHEDULER_CUTS_CUT_TENSORS_H
#define LS_SCHEDULER_CUTS_CUT_TENSORS_H

#include "scheduler/cuts/mandatory_runs.h"
#include "scheduler/cuts/cut_costs_types.h"

/* Sets c->tensor, c->first, c->row and c->early. c->f, c->node and c->model are set. sure: what is
 * certain. */
void ls_cut_tensors(LsArena *arena, LsCutCosts *c, const LsAnchors *a, const LsCertain *sure);

#endif
