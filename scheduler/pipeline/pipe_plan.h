/* scheduler/pipeline/pipe_plan.h -- plans one stage of a pipeline within its budget. */
#ifndef LS_SCHEDULER_PIPELINE_PIPE_PLAN_H
#define LS_SCHEDULER_PIPELINE_PIPE_PLAN_H

#include "scheduler/plan/keep_forget_hints.h"
#include "scheduler/plan/plan_options.h"
#include "scheduler/pipeline/pipe_layout.h"

typedef struct LsPipeWish {
    LsPlanOptions plan;         /* strategy, effort, seconds; budgets are below */
    LsHints hints;
    uint32_t slots;
    const LsPipeFlow *kept;     /* NULL: all micro-batches have one plan; else a flow with LS_PIPE_KEPT, whose plan runs nothing
                                 * again */
    int64_t budget;             /* bytes of arena for all slots; <= 0: none */
    double percent;             /* > 0: replaces it by this part of the arena without recomputation */
    bool least;                 /* the least arena found, whatever it costs */
} LsPipeWish;

typedef struct LsPipePlan {
    LsPipeGraph graph;         /* with the late phase */
    LsPipeLayout layout;
    int64_t none_arena;         /* bytes without recomputation, all slots */
    int64_t least;              /* bytes of the layout; if none fits, of the smallest one */
    int64_t budget;             /* bytes that were allowed; 0: any */
} LsPipePlan;

/* Plans for single micro-batches of many sizes are made; the cheapest one fits whose slots together keep the budget.
 * False: none does, and the layout is the smallest one; with a sentence in `why`: the hints have no meaning here. */
bool ls_pipe_plan(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeWish *wish, LsPipePlan *out, char *why,
                   size_t room);

#endif
