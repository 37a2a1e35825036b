/* scheduler/pipeline/pipeline_plan.c -- see the header. */
#include "scheduler/pipeline/pipeline_plan.h"

#include "scheduler/pipeline/deadlock.h"

enum { TRIES = 6 };             /* cuts, each with more room for what the plans take beyond the estimates */

static double whole_ns(const LsStageFigures *f) { return f->ns[LS_PHASE_F] + f->ns[LS_PHASE_B] + f->ns[LS_PHASE_W]; }

/* Each stage's plans. Of except-last the first micro-batch has the plan of `never`. */
static void plan_stages(LsArena *arena, LsStagePlanner *sp, const LsPipelineWant *want, LsPipelinePlan *out)
{
    const bool apart = ls_order_is_apart(out->order);
    const bool mixed = out->keep == LS_KEEP_EXCEPT_LAST;
    const LsKeepMode others = !mixed ? out->keep : want->micros > 1 ? LS_KEEP_ALWAYS : LS_KEEP_NEVER;
    out->of = ls_arena_alloc(arena, want->stages, sizeof *out->of);
    out->first = ls_arena_alloc(arena, want->stages, sizeof *out->first);
    out->bottleneck = 0;
    for (uint32_t k = 0; k < want->stages; k++) {
        LsArena *tmp = ls_arena_new();
        const LsRankOrder order = ls_rank_order(tmp, out->order, k, want->stages, want->micros);
        const uint32_t slots = ls_rank_order_slots(&order, LS_PHASE_W);
        out->of[k] = ls_stage_plan(sp, &out->stages, k, others, apart, slots, want->budget);
        out->first[k] = mixed ? ls_stage_plan(sp, &out->stages, k, LS_KEEP_NEVER, apart, slots, want->budget) : out->of[k];
        const double ns = ((want->micros - 1) * whole_ns(&out->of[k]) + whole_ns(&out->first[k])) / want->micros;
        out->bottleneck = ns > out->bottleneck ? ns : out->bottleneck;
        ls_arena_free(tmp);
    }
}

/* Before anything relies on the orders: the ranks must come to their end. */
static bool check_orders(const LsPipelineWant *want, const LsPipelinePlan *out, char *why, size_t room)
{
    LsArena *tmp = ls_arena_new();
    const LsFlows flows = ls_flows(tmp, &out->stages, !ls_order_is_apart(out->order));
    LsRankOrder *order = ls_arena_alloc(tmp, want->stages, sizeof *order);
    for (uint32_t k = 0; k < want->stages; k++)
        order[k] = ls_rank_order(tmp, out->order, k, want->stages, want->micros);
    const bool ok = ls_orders_run(&out->stages, &flows, order, want->micros, UINT32_MAX, why, room);
    ls_arena_free(tmp);
    return ok;
}

static bool measure(LsArena *arena, LsStagePlanner *sp, const LsPipelineWant *want, LsPipelinePlan *out, char *why,
                    size_t room)
{
    plan_stages(arena, sp, want, out);
    out->bound = out->stages.bound;
    if (!check_orders(want, out, why, room))
        return false;
    const LsPipelineRun run = {&out->stages, out->order, want->micros, out->of, out->first, want->link};
    out->times = ls_pipeline_simulate(arena, &run);
    out->peak = 0;
    for (uint32_t k = 0; k < want->stages; k++)
        if (out->times.rank[k].peak > out->peak)
            out->peak = out->times.rank[k].peak;
    out->fits = want->budget <= 0 || out->peak <= want->budget;
    return true;
}

bool ls_pipeline_plan(LsArena *arena, LsStagePlanner *sp, const LsProb *p, const LsPipelineWant *want, LsOrderKind order,
                      LsKeepMode keep, LsPipelinePlan *out, char *why, size_t room)
{
    int64_t margin[LS_MOST_STAGES] = {0};
    double bound = 0;
    LsStageOptions o = {.stages = want->stages, .micros = want->micros, .order = order, .keep = keep, .margin = margin,
                        .budget = want->budget};
    *out = (LsPipelinePlan){.order = order, .keep = keep};
    for (int k = 0; k < TRIES && ls_stages_find(arena, p, &o, &out->stages, why, room); k++) {
        bound = k == 0 ? out->stages.bound : bound;
        if (!measure(arena, sp, want, out, why, room))
            return false;
        out->bound = bound;
        if (out->fits)
            return true;
        for (uint32_t r = 0; r < want->stages; r++)
            if (out->times.rank[r].peak > o.budget)
                margin[r] += out->times.rank[r].peak - o.budget;
    }
    o.budget = 0;
    if (!ls_stages_find(arena, p, &o, &out->stages, why, room) || !measure(arena, sp, want, out, why, room))
        return false;
    out->bound = bound > 0 ? bound : out->bound;
    return true;
}
