/* scheduler/pipeline/pipeline_plan.c -- see the header. */
#include "scheduler/pipeline/pipeline_plan.h"

#include "scheduler/pipeline/pipe_holds.h"

enum { CUTS = 8 };              /* each with other room for what the plans take beyond the estimates */

/* Whether a micro-batch of each stage has a plan of its own. A single one is the one that is kept. */
static bool keeps_one(const LsPipelinePlan *of, const LsPipelineWant *want)
{
    return of->keep == LS_KEEP_EXCEPT_LAST && want->micros > 1;
}

/* What a micro-batch runs again. */
static LsRecompute policy_of(const LsPipelinePlan *of, const LsPipelineWant *want)
{
    switch (of->keep) {
    case LS_KEEP_NEVER: return LS_RECOMPUTE_NONE;
    case LS_KEEP_EXCEPT_LAST: return keeps_one(of, want) ? LS_RECOMPUTE_ALL : LS_RECOMPUTE_NONE;
    case LS_KEEP_ALWAYS: return LS_RECOMPUTE_ALL;
    default: return want->policy;
    }
}

/* Bytes beside the arena of tensors that the stage's nodes read. of: by tensor. */
static int64_t bytes_read(const LsPipeCut *c, uint32_t stage, const int64_t *of)
{
    const LsDag *g = c->p->dag;
    LsArena *tmp = ls_arena_new();
    bool *seen = ls_arena_alloc(tmp, g->ntensor + 1u, 1);
    int64_t bytes = 0;
    for (uint32_t i = 0; i < g->nnode; i++)
        for (uint32_t k = 0; c->stage[i] == stage && k < g->node[i].nin; k++) {
            const uint32_t t = g->node[i].in[k];
            bytes += seen[t] ? 0 : of[t];
            seen[t] = true;
        }
    ls_arena_free(tmp);
    return bytes;
}

/* Times of the phases, by estimate. again: B makes all of F again. */
static LsStageTimes (*first_times(LsArena *arena, const LsStages *s, bool again))[LS_PIPE_PLANS]
{
    LsStageTimes (*of)[LS_PIPE_PLANS] = ls_arena_alloc(arena, s->k, sizeof *of);
    for (uint32_t k = 0; k < s->k; k++)
        for (int phase = 0; phase < LS_PHASES; phase++)
            of[k][LS_PIPE_USUAL].ns[phase] = s->ns[k][phase] + (again && phase == LS_PHASE_B ? s->ns[k][LS_PHASE_F] : 0);
    return of;
}

/* Sets messages, flows, and the bytes of each rank beside its arena. */
static bool connect(LsArena *arena, const LsProb *p, const LsPipelineWant *want, LsPipelinePlan *out, char *why, size_t room)
{
    const uint32_t k = want->stages;
    bool reads[LS_MOST_STAGES];
    if (!ls_pipe_cut(arena, p, &out->stages, ls_order_is_apart(out->order), &out->cut, why, room))
        return false;
    out->fixed = ls_arena_alloc(arena, k, sizeof *out->fixed);
    out->flow = ls_arena_alloc(arena, k, sizeof *out->flow);
    for (uint32_t s = 0; s < k; s++)
        reads[s] = bytes_read(&out->cut, s, want->input) > 0;
    ls_pipe_flow(arena, &out->cut, out->order, want->micros, reads, out->flow);
    const bool again = policy_of(out, want) == LS_RECOMPUTE_ALL;
    ls_pipe_holds(&out->cut, out->order, want->micros, first_times(arena, &out->stages, again), want->link);
    if (!ls_pipe_ring(&out->cut, out->flow, want->micros, &out->ring, why, room))
        return false;
    for (uint32_t s = 0; s < k && keeps_one(out, want); s++)
        ls_pipe_flow_keep(&out->flow[s]);
    out->ring = out->ring + want->prefetch > want->least_ring ? out->ring + want->prefetch : want->least_ring;
    for (uint32_t s = 0; s < k; s++)
        out->fixed[s] = bytes_read(&out->cut, s, want->state) + out->ring * bytes_read(&out->cut, s, want->input);
    return true;
}

/* Times of the phases. In orders that run W within B, what belongs to W and is run for the first time counts as W. */
static LsStageTimes times_of(const LsPipelinePlan *out, uint32_t stage, uint32_t number)
{
    const LsPipePlan *p = &out->plan[stage];
    const LsPipeRuns *runs = &p->layout.of[number];
    const LsPlan *plan = &runs->plan;
    LsStageTimes of = {.again = 0};
    uint32_t run = 0;
    for (uint32_t s = 0; s < plan->nstep; s++) {
        const LsPlanStep *step = &plan->step[s];
        if (step->free)
            continue;
        int phase = LS_PHASE_F;
        while (phase < LS_PHASE_LATE && run >= runs->phase_at[phase + 1])
            phase++;
        const uint32_t node = p->graph.node_of[step->id];
        if (phase == LS_PHASE_B && node != LS_NO_ID && !step->again && out->stages.phase[node] == LS_PHASE_W)
            phase = LS_PHASE_W;
        of.ns[phase] += p->graph.dag.node[step->id].cost;
        of.again += step->again ? p->graph.dag.node[step->id].cost : 0;
        run++;
    }
    return of;
}

static void set_times(LsPipelinePlan *out, uint32_t stage, uint32_t micros)
{
    const LsPipeLayout *l = &out->plan[stage].layout;
    const double ns = ls_pipe_cost(l, micros);
    const int64_t bytes = ls_pipeline_rank_bytes(out, stage);
    for (uint32_t k = 0; k < l->nplan; k++)
        out->of[stage][k] = times_of(out, stage, k);
    out->bottleneck = ns > out->bottleneck ? ns : out->bottleneck;
    out->peak = bytes > out->peak ? bytes : out->peak;
}

static bool plan_stages(LsArena *arena, const LsPipelineWant *want, LsPipelinePlan *out, char *why, size_t room)
{
    out->plan = ls_arena_alloc(arena, want->stages, sizeof *out->plan);
    out->of = ls_arena_alloc(arena, want->stages, sizeof *out->of);
    out->fits = true;
    out->bottleneck = 0;
    out->peak = 0;
    for (uint32_t k = 0; k < want->stages; k++) {
        LsPipeWish wish = {.plan = want->plan, .flow = &out->flow[k], .keeps_one = keeps_one(out, want), .percent = want->percent,
                           .least = want->least, .memo = want->memo->plans};
        wish.hints.recompute = policy_of(out, want);
        wish.plan.unproven = true;
        wish.plan.compare = false;
        if (want->budget > 0)
            wish.budget = want->budget > out->fixed[k] ? want->budget - out->fixed[k] : 1;
        if (!ls_pipe_plan(arena, &out->cut, k, &wish, &out->plan[k], why, room)) {
            if (why[0] != '\0')
                return false;
            out->fits = false;
        }
        set_times(out, k, want->micros);
    }
    return true;
}

static bool plan_cut(LsArena *arena, const LsProb *p, const LsPipelineWant *want, LsPipelinePlan *out, char *why, size_t room)
{
    if (!connect(arena, p, want, out, why, room) || !plan_stages(arena, want, out, why, room))
        return false;
    const LsPipelineRun run = {&out->cut, out->flow, want->micros, out->of, want->link};
    out->times = ls_pipeline_simulate(arena, &run);
    return true;
}

/* Margins of the next cut. low: those of the last cut, whose ranks took too much; high: those with which there was no
 * cut. */
typedef struct Margins { int64_t low[LS_MOST_STAGES], high[LS_MOST_STAGES], now[LS_MOST_STAGES]; bool none; } Margins;

static void widen(Margins *m, const LsPipelineWant *want, const LsPipelinePlan *out)
{
    for (uint32_t r = 0; r < want->stages; r++) {
        const int64_t over = ls_pipeline_rank_bytes(out, r) - want->budget;
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

/* Cuts within the budget. Returns whether the ranks of some cut keep it. */
static bool find_within(LsArena *arena, const LsProb *p, const LsPipelineWant *want, LsStageOptions o, LsPipelinePlan *out,
                        char *why, size_t room)
{
    Margins m = {.none = false};
    double bound = 0;
    o.margin = m.now;
    for (int k = 0; k < CUTS; k++) {
        if (!ls_stages_find(arena, p, &o, &out->stages, why, room)) {
            if (k == 0)
                return false;
            narrow(&m, want);
            continue;
        }
        bound = k == 0 ? out->stages.bound : bound;
        if (!plan_cut(arena, p, want, out, why, room))
            return false;
        out->bound = bound;
        if (out->fits)
            return true;
        widen(&m, want, out);
    }
    return false;
}

LsPipelineMemo *ls_pipeline_memo_new(LsArena *arena)
{
    LsPipelineMemo *m = ls_arena_alloc(arena, 1, sizeof *m);
    m->plans = ls_plan_memo_new(arena);
    return m;
}

bool ls_pipeline_cut(LsArena *arena, const LsProb *p, const LsPipelineWant *want, LsKeepMode keep, LsStages *out, char *why,
                     size_t room)
{
    LsStages *known = &want->memo->cut[keep];
    const LsStageOptions o = {.stages = want->stages, .micros = want->micros, .keep = keep};
    if (known->k == 0 && !ls_stages_find(arena, p, &o, known, why, room))
        return false;
    *out = *known;
    return true;
}

static bool plan_pipeline(LsArena *arena, const LsProb *p, const LsPipelineWant *want, LsOrderKind order, LsKeepMode keep,
                          LsPipelinePlan *out, char *why, size_t room)
{
    LsStageOptions o = {.stages = want->stages, .micros = want->micros, .order = order, .keep = keep, .budget = want->budget};
    *out = (LsPipelinePlan){.order = order, .keep = keep};
    if (want->budget > 0 && find_within(arena, p, want, o, out, why, room))
        return true;
    /* This cut is the same for every budget: what it takes at least is a budget that can be kept. */
    if (!ls_pipeline_cut(arena, p, want, keep, &out->stages, why, room) || !plan_cut(arena, p, want, out, why, room))
        return false;
    out->bound = out->stages.bound;
    return true;
}

bool ls_pipeline_plan(LsArena *arena, const LsProb *p, const LsPipelineWant *want, LsOrderKind order, LsKeepMode keep,
                      LsPipelinePlan *out, char *why, size_t room)
{
    LsPipelineWant known = *want;
    if (known.memo == NULL)
        known.memo = ls_pipeline_memo_new(arena);
    return plan_pipeline(arena, p, &known, order, keep, out, why, room);
}
