/* codegen/planning/step_replay.h -- the time of a planned program's step: its runs in order, each
 * with the bytes it touches that are still in the cache.
 *
 * The scheduler's cost of a node is one number, whenever the node runs. Their sum is a first
 * estimate of a step. A result that is read at once, or an arena address that was just in use,
 * makes the step shorter, and a recomputation reads its operands from wherever they are then. */
#ifndef LS_CODEGEN_PLANNING_STEP_REPLAY_H
#define LS_CODEGEN_PLANNING_STEP_REPLAY_H

#include "codegen/planning/plan_problem.h"
#include "scheduler/candidates/plan_steps.h"

/* The work of each run of the plan (of p's dag), by run, in the second of two steps: the first was
 * the last to touch the state. A result in the place of an operand finds that place in the
 * cache. */
LsWork *ls_replay(LsArena *arena, const LsProblem *p, const LsPlan *plan, const LsMachine *m);

/* Time of a step in ns: its runs and m->step. */
double ls_replay_ns(LsArena *arena, const LsProblem *p, const LsPlan *plan, const LsMachine *m);

#endif
