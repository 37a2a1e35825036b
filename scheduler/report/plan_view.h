/* scheduler/report/plan_view.h -- prints a plan for people and for scripts. */
#ifndef LS_SCHEDULER_REPORT_PLAN_VIEW_H
#define LS_SCHEDULER_REPORT_PLAN_VIEW_H

#include <stdio.h>

#include "scheduler/plan/planner.h"

/* Prints the rows of the report: live peak, arena, overhead and least arena of each strategy. */
void ls_view_table(FILE *to, const LsPlanReport *report);

/* Prints the bytes kept for the backward part and the bytes recomputed, in all and by forward and
 * backward nodes. */
void ls_view_turn(FILE *to, const LsDag *dag, const LsPlan *plan);

/* Prints the operators whose nodes run again: nodes, bytes that need not be kept, further runs and
 * their time. */
void ls_view_again(FILE *to, const LsDag *dag, const LsPlan *plan);

/* Prints the proofs: how much cheaper than this plan (NULL: none was found) a plan within the
 * budget can be, at which node, and the lower bound on the live peak. */
void ls_view_bound(FILE *to, const LsDag *dag, const LsPlan *plan, const LsPlanReport *report);

/* Prints the step at the peak and the `most` largest tensors that are live there. */
void ls_view_peak(FILE *to, const LsDag *dag, const LsPlanReport *report, uint32_t most);

/* Prints Graphviz: a box per node, an edge per tensor read. Recomputed nodes are orange, forward
 * nodes that are kept green, backward nodes blue, updates grey. */
void ls_view_dot(FILE *to, const LsDag *dag, const LsPlan *plan);

/* Prints {"schema": 1, ...}: the report, and the plan's figures if there is a plan (NULL: none). */
void ls_view_json(FILE *to, const LsDag *dag, const LsPlan *plan, const LsPlanReport *report);

#endif
