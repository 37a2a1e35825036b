/* codegen/planning/stage_problem.h -- the part of a problem that one stage of a pipeline runs. */
#ifndef LS_CODEGEN_PLANNING_STAGE_PROBLEM_H
#define LS_CODEGEN_PLANNING_STAGE_PROBLEM_H

#include "codegen/planning/plan_problem.h"
#include "scheduler/pipes/pipe_graph.h"

/* The problem whose dag is the stage's graph; its nodes that begin phases are none of LsGraph. */
LsProblem *ls_stage_problem(LsArena *arena, const LsProblem *whole, const LsPipeGraph *stage);

/* Whether all nodes of the late phase may run once per step, and copies of state last for one: nothing there is moved by every
 * micro-batch. Else false after a diagnostic. */
bool ls_stages_check(LsCtx *cx, const LsProblem *whole, const LsPipeCut *c);

/* Bytes of parameters and other state that nodes of the stage use, and of a batch of the inputs that they read. */
int64_t ls_stage_state(const LsProblem *whole, const LsPipeCut *c, uint32_t stage);
int64_t ls_stage_inputs(const LsProblem *whole, const LsPipeCut *c, uint32_t stage);

#endif
