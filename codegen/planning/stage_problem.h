/* codegen/planning/stage_problem.h -- the part of a problem that one stage of a pipeline runs. */
#ifndef LS_CODEGEN_PLANNING_STAGE_PROBLEM_H
#define LS_CODEGEN_PLANNING_STAGE_PROBLEM_H

#include "codegen/planning/plan_problem.h"
#include "scheduler/pipeline/stage_graph.h"

/* The problem whose dag is the stage's graph; its nodes that begin phases are none of LsGraph. */
LsProblem *ls_stage_problem(LsArena *arena, const LsProblem *whole, const LsPipeGraph *stage);

/* Why a graph has no such pipeline. */
typedef struct LsStagesReason { LsWhere at; const char *why, *hint; } LsStagesReason;

/* Whether all nodes of the late phase may run once per step, and copies of state last for one:
 * nothing there is moved by every micro-batch. Else false with a reason. */
bool ls_stages_check(const LsProblem *whole, const LsPipeCut *c, LsStagesReason *reason);

/* By tensor: bytes of state, and of a batch of an input, that a rank whose nodes read it needs
 * beside its arena. */
int64_t *ls_state_bytes(LsArena *arena, const LsProblem *whole);
int64_t *ls_input_bytes(LsArena *arena, const LsProblem *whole);

#endif
