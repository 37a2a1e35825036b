/* scheduler/plan/hint_plan.h -- plans of the graph that hints changed, brought back to the graph as
 * it was. */
#ifndef LS_SCHEDULER_PLAN_HINT_PLAN_H
#define LS_SCHEDULER_PLAN_HINT_PLAN_H

#include "scheduler/plan/hint_graph.h"
#include "scheduler/plan/planner.h"

/* As ls_plan; the plan and the report are of h->from. What a hint forces to run again counts as
 * overhead. The bound is one for plans that keep to the hints. */
bool ls_hints_plan(LsArena *arena, const LsHinted *h, const LsPlanOptions *options, LsPlan *out,
                   LsPlanReport *report);

/* As ls_planner_ask; planner: one of h->dag, with reuse in place or not as it was made with. */
bool ls_hints_ask(LsArena *arena, const LsHinted *h, LsPlanner *planner, bool inplace,
                  const char *strategy, int64_t budget, LsPlan *out, LsPlanReport *report);

#endif
