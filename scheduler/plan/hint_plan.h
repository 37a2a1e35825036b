/* scheduler/plan/hint_plan.h -- plans the graph that hints changed, and translates the plan back to
 * the original graph. */
#ifndef LS_SCHEDULER_PLAN_HINT_PLAN_H
#define LS_SCHEDULER_PLAN_HINT_PLAN_H

#include "scheduler/plan/hint_graph.h"
#include "scheduler/plan/planner.h"

/* Like ls_plan; the plan and the report are of h->from. Recomputation that a hint forces counts as
 * overhead. The bound holds for plans that keep to the hints. */
bool ls_hints_plan(LsArena *arena, const LsHinted *h, const LsPlanOptions *options, LsPlan *out,
                   LsPlanReport *report);

/* Like ls_planner_ask. planner: a planner of h->dag; inplace: whether it was made with in-place
 * reuse. */
bool ls_hints_ask(LsArena *arena, const LsHinted *h, LsPlanner *planner, bool inplace,
                  const char *strategy, int64_t budget, LsPlan *out, LsPlanReport *report);

#endif
