/* codegen/planning/step_replay.h -- what a planned program's step takes: its runs in their order, each with what
 * the cache still holds of the bytes that it touches.
 *
 * The scheduler's costs are one number a node, whenever it runs. That a plan's step takes their sum
 * is a first estimate: a result that is read at once, a place in the arena that was just left, make
 * it shorter, and a node that runs again does it from where its operands are then. */
#ifndef LS_CODEGEN_PLANNING_STEP_REPLAY_H
#define LS_CODEGEN_PLANNING_STEP_REPLAY_H

#include "codegen/planning/plan_problem.h"
#include "scheduler/candidates/plan_steps.h"

/* What each run of the plan (ls_dag of p) does, by run, in the second of two steps: the state was
 * last touched in the first. A result in the place of an operand finds it in the cache. */
LsWork *ls_replay(LsArena *arena, const LsProblem *p, const LsPlan *plan, const LsMachine *m);

/* ns of a step: of its runs and m->step. */
double ls_replay_ns(LsArena *arena, const LsProblem *p, const LsPlan *plan, const LsMachine *m);

#endif
