/* scheduler/report/plan_view.h -- a plan for people and for their scripts. */
#ifndef LS_SCHEDULER_REPORT_PLAN_VIEW_H
#define LS_SCHEDULER_REPORT_PLAN_VIEW_H

#include <stdio.h>

#include "scheduler/plan/planner.h"

/* The rows of the report: live peak, arena and overhead of each strategy, and what it could do
 * at least. */
void ls_view_table(FILE *to, const LsPlanReport *report);

/* Bytes kept for the backward part and bytes made again. */
void ls_view_turn(FILE *to, const LsDag *dag, const LsPlan *plan);

/* What is proven: how far any plan within the budget is from this one (NULL: none was found), at
 * which node, and the least live peak of any plan. */
void ls_view_bound(FILE *to, const LsDag *dag, const LsPlan *plan, const LsPlanReport *report);

/* The step with the peak and the `most` largest tensors that are live there. */
void ls_view_peak(FILE *to, const LsDag *dag, const LsPlanReport *report, uint32_t most);

/* Graphviz: a box per node, an edge per tensor read; what is run again is orange, forward nodes
 * that are kept are green, backward ones blue, updates grey. */
void ls_view_dot(FILE *to, const LsDag *dag, const LsPlan *plan);

/* {"schema": 1, ...}: the report, and the plan's figures if there is one (NULL: none). */
void ls_view_json(FILE *to, const LsDag *dag, const LsPlan *plan, const LsPlanReport *report);

#endif
