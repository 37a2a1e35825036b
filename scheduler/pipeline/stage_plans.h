/* scheduler/pipeline/stage_plans.h -- plans of the stages, and what they take. */
#ifndef LS_SCHEDULER_PIPELINE_STAGE_PLANS_H
#define LS_SCHEDULER_PIPELINE_STAGE_PLANS_H

#include "scheduler/pipeline/stages.h"

/* Plans of stages that were asked for before are remembered, whatever cut they belong to. */
typedef struct LsStagePlanner LsStagePlanner;

/* effort: of plan_options.h. All in `arena`. */
LsStagePlanner *ls_stage_planner_new(LsArena *arena, const LsProb *p, uint32_t effort);

/* Bytes of a rank that holds `slots` micro-batches at once, messages apart. */
int64_t ls_stage_rank_bytes(const LsStageFigures *f, uint32_t slots);

/* What a micro-batch takes in a stage by the planner's plan. keep: not LS_KEEP_EXCEPT_LAST. slots: micro-batches that
 * the rank holds at once. Of LS_KEEP_AUTO the fastest plan is taken with which the rank keeps `budget` bytes (0: none), or
 * else the one of the fewest bytes. apart: W runs apart from B. */
LsStageFigures ls_stage_plan(LsStagePlanner *sp, const LsStages *s, uint32_t stage, LsKeepMode keep, bool apart,
                             uint32_t slots, int64_t budget);

#endif
