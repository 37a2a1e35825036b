/* scheduler/pipeline/pipeline_plan.h -- a pipeline as a program runs it: its cut, the plan and the
 * arena of every stage, and its times, for one order and one mode of recomputation. */
#ifndef LS_SCHEDULER_PIPELINE_PIPELINE_PLAN_H
#define LS_SCHEDULER_PIPELINE_PIPELINE_PLAN_H

#include "scheduler/pipeline/stage_plan.h"
#include "scheduler/pipeline/pipeline_simulation.h"

/* What several pipelines of one graph have in common. */
typedef struct LsPipelineMemo {
    LsPlanMemo *plans;
    LsStages cut[LS_KEEP_AUTO + 1];     /* without a budget, by mode; k = 0: not made yet */
} LsPipelineMemo;

typedef struct LsPipelineWant {
    uint32_t stages, micros;
    LsBudget budget;            /* bytes of a rank; part and least of the arena of each stage */
    LsRecompute policy;         /* of LS_KEEP_AUTO */
    LsPlanOptions plan;         /* of a stage; the budget is that above */
    const int64_t *state, *input;       /* by tensor: bytes that a rank whose nodes read it needs
                                         * beside its arena; of `input` once for each batch in the
                                         * ring */
    uint32_t prefetch;          /* batches in the ring beside those that the stages need at a
                                 * time */
    uint32_t least_ring;        /* batches */
    LsLinkSpeed link;
    LsPipelineMemo *memo;       /* of the same graph, stages, micro-batches and options of plans; or
                                 * NULL */
} LsPipelineWant;

typedef struct LsPipelinePlan {
    LsOrderKind order;
    LsKeepMode keep;
    bool fits;                  /* all ranks keep the budget; else the cut is that without a budget,
                                 * and stages that exceed it have their least arena */
    LsStages stages;
    LsPipeCut cut;
    LsPipeFlow *flow;           /* by stage */
    LsPipePlan *plan;           /* by stage */
    LsProcessBytes *rank;       /* by stage: what its rank takes beside the arena */
    uint32_t ring;              /* batches in the input ring */
    LsStageTimes (*of)[LS_PIPE_PLANS];  /* by stage; of LS_PIPE_KEPT, if its micro-batch is planned
                                         * apart */
    LsPipelineTimes times;
    double bottleneck;          /* ns of a micro-batch, the mean of all, in the slowest stage, with
                                 * what runs once per step */
    double bound;               /* no cut within the budget has a smaller one */
    int64_t peak;               /* bytes of the largest rank */
} LsPipelinePlan;

LsPipelineMemo *ls_pipeline_memo_new(LsArena *arena);

/* The best cut without a budget; want->memo is there. False, with a sentence: there are too many
 * stages. */
bool ls_pipeline_cut(LsArena *arena, const LsProb *p, const LsPipelineWant *want, LsKeepMode keep,
                     LsStages *out, char *why, size_t room);

/* Cuts and plans, and again with room for what the plans took beyond the estimates, until the ranks
 * keep the budget. If no rank fits, out->peak is a budget that can be met. False, with a sentence
 * in `why`: there are too many stages, the graph has no such pipeline, or ranks would wait in a
 * circle. */
bool ls_pipeline_plan(LsArena *arena, const LsProb *p, const LsPipelineWant *want,
                      LsOrderKind order, LsKeepMode keep, LsPipelinePlan *out, char *why,
                      size_t room);

/* The policy of a mode; that of LS_KEEP_AUTO is want->policy. And the mode that a policy asks for.
 */
LsRecompute ls_pipeline_policy(const LsPipelineWant *want, LsKeepMode keep);
LsKeepMode ls_pipeline_keep(LsRecompute policy);

/* Whether the order runs W apart from B. */
static inline bool ls_order_is_apart(LsOrderKind kind) { return kind == LS_ORDER_ZB; }

/* Bytes of a rank. */
static inline int64_t ls_pipeline_rank_bytes(const LsPipelinePlan *plan, uint32_t stage)
{
    return ls_process_total(&plan->rank[stage], plan->plan[stage].layout.arena);
}

/* Whether the bound can be one: no plan is faster than it. The tests hold it over random graphs. */
static inline bool ls_pipeline_is_proven(const LsPipelinePlan *plan)
{
    return plan->bound > 0 && plan->bottleneck >= plan->bound * (1 - 1e-9);
}

/* How much longer the slowest stage takes than the bound says it must, as a part of the bound,
 * which is proven. */
static inline double ls_pipeline_gap(const LsPipelinePlan *plan)
{
    const double over = plan->bottleneck - plan->bound;
    return over > 1e-9 * plan->bound ? over / plan->bound : 0;
}

#endif
