/* scheduler/pipeline/pipeline_plan.c -- see the header. */
#include "scheduler/pipeline/pipeline_plan.h"

#include "scheduler/pipeline/deadlock.h"

enum { CUTS = 8 };              /* each with other room for what the plans take beyond the estimates */
enum { PLANS = 3 };             /* of the stages of a cut, each with more room for messages */

static double whole_ns(const LsStageFigures *f) { return f->ns[LS_PHASE_F] + f->ns[LS_PHASE_B] + f->ns[LS_PHASE_W]; }

/* Each stage's plans. Of except-last the first micro-batch has the plan of `never`. beside: by rank, bytes of messages. */
static void plan_stages(LsArena *arena, LsStagePlanner *sp, const LsPipelineWant *want, const int64_t *beside,
                        LsPipelinePlan *out)
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
        const int64_t budget = want->budget > 0 && want->budget <= beside[k] ? 1 : want->budget - beside[k];
        out->of[k] = ls_stage_plan(sp, &out->stages, k, others, apart, slots, budget);
        out->first[k] = mixed ? ls_stage_plan(sp, &out->stages, k, LS_KEEP_NEVER, apart, slots, budget) : out->of[k];
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

static void simulate(LsArena *arena, const LsPipelineWant *want, LsPipelinePlan *out)
{
    const LsPipelineRun run = {&out->stages, out->order, want->micros, out->of, out->first, want->link};
    out->times = ls_pipeline_simulate(arena, &run);
    out->peak = 0;
    for (uint32_t k = 0; k < want->stages; k++)
        out->peak = out->times.rank[k].peak > out->peak ? out->times.rank[k].peak : out->peak;
    out->fits = want->budget <= 0 || out->peak <= want->budget;
}

/* Plans the stages of a cut, and again with less memory where messages take what was left. */
static bool measure(LsArena *arena, LsStagePlanner *sp, const LsPipelineWant *want, LsPipelinePlan *out, char *why,
                    size_t room)
{
    int64_t beside[LS_MOST_STAGES] = {0};
    if (!check_orders(want, out, why, room))
        return false;
    for (int k = 0; k < PLANS; k++) {
        plan_stages(arena, sp, want, beside, out);
        simulate(arena, want, out);
        if (out->fits || out->keep != LS_KEEP_AUTO)
            break;
        for (uint32_t r = 0; r < want->stages; r++)
            if (out->times.rank[r].peak > want->budget)
                beside[r] = out->times.rank[r].peak
                            - ls_stage_rank_bytes(&out->of[r], ls_rank_order_slots(&out->times.rank[r].order, LS_PHASE_W));
    }
    return true;
}

/* Margins of the next cut. low: those of the last cut, whose ranks took too much; high: those with which there was no
 * cut. */
typedef struct Margins { int64_t low[LS_MOST_STAGES], high[LS_MOST_STAGES], now[LS_MOST_STAGES]; bool none; } Margins;

static void widen(Margins *m, const LsPipelineWant *want, const LsPipelinePlan *out)
{
    for (uint32_t r = 0; r < want->stages; r++) {
        const int64_t over = out->times.rank[r].peak - want->budget;
        m->low[r] = m->now[r];
        m->now[r] = m->none ? (m->low[r] + m->high[r]) / 2 : m->now[r] + (over > 0 ? over : 0);
    }
}

static void narrow(Margins *m, const LsPipelineWant *want)
{
    m->none = true;
    for (uint32_t r = 0; r < want->stages; r++) {
        m->high[r] = m->now[r];
        m->now[r] = (m->low[r] + m->high[r]) / 2;
    }
}

bool ls_pipeline_plan(LsArena *arena, LsStagePlanner *sp, const LsProb *p, const LsPipelineWant *want, LsOrderKind order,
                      LsKeepMode keep, LsPipelinePlan *out, char *why, size_t room)
{
    Margins m = {.none = false};
    double bound = 0;
    LsStageOptions o = {.stages = want->stages, .micros = want->micros, .order = order, .keep = keep, .margin = m.now,
                        .budget = want->budget};
    LsPipelinePlan at = {.order = order, .keep = keep};
    *out = at;
    for (int k = 0; k < CUTS; k++) {
        if (!ls_stages_find(arena, p, &o, &at.stages, why, room)) {
            if (k == 0)
                break;
            narrow(&m, want);
            continue;
        }
        bound = k == 0 ? at.stages.bound : bound;
        if (!measure(arena, sp, want, &at, why, room))
            return false;
        at.bound = bound;
        if (out->of == NULL || at.fits || at.peak < out->peak)
            *out = at;
        if (at.fits)
            return true;
        widen(&m, want, &at);
    }
    o.budget = 0;
    if (out->of != NULL)
        return true;
    if (!ls_stages_find(arena, p, &o, &out->stages, why, room) || !measure(arena, sp, want, out, why, room))
        return false;
    out->bound = out->stages.bound;
    return true;
}
