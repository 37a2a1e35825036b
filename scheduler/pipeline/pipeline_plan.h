/* scheduler/pipeline/pipeline_plan.h -- a pipeline with its cut, its stages' plans and its times, for one order and one mode of
 * recomputation. */
#ifndef LS_SCHEDULER_PIPELINE_PIPELINE_PLAN_H
#define LS_SCHEDULER_PIPELINE_PIPELINE_PLAN_H

#include "scheduler/pipeline/pipeline_simulation.h"
#include "scheduler/pipeline/stage_plans.h"

typedef struct LsPipelineWant {
    uint32_t stages, micros;
    int64_t budget;             /* bytes of a rank, state included; 0: none */
    LsLinkSpeed link;
} LsPipelineWant;

typedef struct LsPipelinePlan {
    LsOrderKind order;
    LsKeepMode keep;
    bool fits;                  /* all ranks keep the budget; else the figures are those of the cut of fewest bytes
                                 * that was tried, and the bound says nothing */
    LsStages stages;
    LsStageFigures *of;         /* by stage: of a micro-batch, by its plan */
    LsStageFigures *first;      /* of micro-batch 0 */
    LsPipelineTimes times;
    double bottleneck;          /* mean ns of a micro-batch in the slowest stage */
    double bound;               /* no cut within the budget has a smaller one */
    int64_t peak;               /* bytes of the largest rank */
} LsPipelinePlan;

/* Cuts, plans and simulates, and again with room for what the plans took beyond the estimates, until the ranks keep the
 * budget. False, with a sentence in `why`, if there are too many stages or the ranks would wait in a circle. */
bool ls_pipeline_plan(LsArena *arena, LsStagePlanner *sp, const LsProb *p, const LsPipelineWant *want, LsOrderKind order,
                      LsKeepMode keep, LsPipelinePlan *out, char *why, size_t room);

/* How much longer the slowest stage takes than the bound says it must, as a part of the bound. */
static inline double ls_pipeline_gap(const LsPipelinePlan *plan)
{
    const double over = plan->bottleneck - plan->bound;
    return plan->bound > 0 && over > 1e-9 * plan->bound ? over / plan->bound : 0;
}

#endif
