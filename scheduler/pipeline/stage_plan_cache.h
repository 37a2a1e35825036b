/* scheduler/pipeline/stage_plan_cache.h -- plans of stages that were made before: other orders and
 * cuts have stages that are alike. */
#ifndef LS_SCHEDULER_PIPELINE_STAGE_PLAN_CACHE_H
#define LS_SCHEDULER_PIPELINE_STAGE_PLAN_CACHE_H

#include "scheduler/candidates/plan_steps.h"
#include "scheduler/pipeline/stage_graph.h"
#include "scheduler/plan/keep_forget_hints.h"

typedef struct LsPlanMemo LsPlanMemo;

typedef struct LsPlanSource {   /* how plans of a graph were made, beside the options that are
                                 * always the same */
    LsRecompute policy;         /* of hints; LS_RECOMPUTE_AUTO: there were none */
    int64_t extra, late;        /* bytes that exist while phase B begins, while W does */
    uint32_t part;              /* of what was forgotten; 0: nothing */
    uint32_t effort;
    bool one;                   /* only the cheapest plan */
} LsPlanSource;

typedef struct LsPlanned { const LsPlan *plan; uint32_t n; bool found; } LsPlanned;

/* For stages of one graph, planned with the same options. Everything comes from `arena`. */
LsPlanMemo *ls_plan_memo_new(LsArena *arena);

/* Returns the stage's graph without the late phase. Graphs that are the same have one place. */
LsPipeGraph *ls_plan_memo_graph(LsPlanMemo *m, const LsPipeCut *c, uint32_t stage);

/* g: from ls_plan_memo_graph. */
LsPlanned ls_plan_memo_find(const LsPlanMemo *m, const LsPipeGraph *g, const LsPlanSource *source);
void ls_plan_memo_add(LsPlanMemo *m, const LsPipeGraph *g, const LsPlanSource *source,
                      const LsPlan *plan, uint32_t n);

#endif
