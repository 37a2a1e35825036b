/* scheduler/pipeline/stage_plan.h -- plans one stage of a pipeline within its budget. */
#ifndef LS_SCHEDULER_PIPELINE_STAGE_PLAN_H
#define LS_SCHEDULER_PIPELINE_STAGE_PLAN_H

#include "scheduler/plan/keep_forget_hints.h"
#include "scheduler/plan/plan_options.h"
#include "scheduler/pipeline/stage_layout.h"
#include "scheduler/pipeline/stage_plan_cache.h"

typedef struct LsPipeWish {
    LsPlanOptions plan;         /* strategy, effort, seconds; the budget is below */
    LsHints hints;
    const LsPipeFlow *flow;
    bool keeps_one;             /* a micro-batch of the flow has LS_PIPE_KEPT, whose plan runs
                                 * nothing again */
    LsBudget budget;            /* of the arena, for all micro-batches under way */
    LsPlanMemo *memo;           /* or NULL */
} LsPipeWish;

typedef struct LsPipePlan {
    LsPipeGraph graph;         /* with the late phase */
    LsPipeLayout layout;
    int64_t none_arena; /* bytes without recomputation; only with LsPipeWish.budget.percent */
    int64_t least;              /* bytes of the layout; if none fits, of the smallest one */
    int64_t budget;             /* bytes of arena that were allowed; 0: any */
} LsPipePlan;

/* Plans for single micro-batches of many sizes are made; the cheapest one is taken whose layout
 * keeps the budget. False: none does, and the layout is the smallest one; with a sentence in `why`:
 * the hints have no meaning here. */
bool ls_pipe_plan(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeWish *wish,
                  LsPipePlan *out, char *why, size_t room);

#endif
