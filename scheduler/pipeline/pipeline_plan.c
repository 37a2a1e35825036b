/* scheduler/pipeline/pipeline_plan.c -- see the header. */
#include "scheduler/pipeline/pipeline_plan.h"

#include "scheduler/pipeline/message_lifetimes.h"

#include <assert.h>

enum { CUTS = 8, SEARCHES = 32 };   /* each with other room for what the plans take beyond the
                                     * estimates; planned, sought */

/* Whether a micro-batch of each stage has a plan of its own. A single one is the one that is
 * kept. */
static bool keeps_one(const LsPipelinePlan *of, const LsPipelineWant *want)
{
    return of->keep == LS_KEEP_EXCEPT_LAST && want->micros > 1;
}

static const LsRecompute of_keep[] = {
    [LS_KEEP_NEVER] = LS_RECOMPUTE_NONE, [LS_KEEP_EXCEPT_LAST] = LS_RECOMPUTE_EXCEPT_LAST,
    [LS_KEEP_ALWAYS] = LS_RECOMPUTE_ALL, [LS_KEEP_AUTO] = LS_RECOMPUTE_AUTO};

LsRecompute ls_pipeline_policy(const LsPipelineWant *want, LsKeepMode keep)
{
    return keep == LS_KEEP_AUTO ? want->policy : of_keep[keep];
}

LsKeepMode ls_pipeline_keep(LsRecompute policy)
{
    LsKeepMode k = LS_KEEP_NEVER;
    while (k < LS_KEEP_AUTO && of_keep[k] != policy)
        k++;
    return k;
}

/* What the usual micro-batch runs again. */
static LsRecompute policy_of(const LsPipelinePlan *of, const LsPipelineWant *want)
{
    const LsRecompute policy = ls_pipeline_policy(want, of->keep);
    if (policy != LS_RECOMPUTE_EXCEPT_LAST)
        return policy;
    return keeps_one(of, want) ? LS_RECOMPUTE_ALL : LS_RECOMPUTE_NONE;
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
            of[k][LS_PIPE_USUAL].ns[phase] =
                s->ns[k][phase] + (again && phase == LS_PHASE_B ? s->ns[k][LS_PHASE_F] : 0);
    return of;
}

/* Sets messages, flows, and the bytes of each rank beside its arena. */
static bool connect(LsArena *arena, const LsProb *p, const LsPipelineWant *want,
                    LsPipelinePlan *out, char *why, size_t room)
{
    const uint32_t k = want->stages;
    bool reads[LS_MOST_STAGES];
    if (!ls_pipe_cut(arena, p, &out->stages, ls_order_is_apart(out->order), &out->cut, why, room))
        return false;
    out->rank = ls_arena_alloc(arena, k, sizeof *out->rank);
    out->flow = ls_arena_alloc(arena, k, sizeof *out->flow);
    for (uint32_t s = 0; s < k; s++)
        reads[s] = bytes_read(&out->cut, s, want->input) > 0;
    ls_pipe_flow(arena, &out->cut, out->order, want->micros, reads, out->flow);
    const bool again = policy_of(out, want) == LS_RECOMPUTE_ALL;
    ls_pipe_holds(&out->cut, out->order, want->micros, first_times(arena, &out->stages, again),
                  want->link);
    if (!ls_pipe_ring(&out->cut, out->flow, want->micros, &out->ring, why, room))
        return false;
    for (uint32_t s = 0; s < k && keeps_one(out, want); s++)
        ls_pipe_flow_keep(&out->flow[s]);
    out->ring = out->ring + want->prefetch > want->least_ring ? out->ring + want->prefetch
                                                              : want->least_ring;
    for (uint32_t s = 0; s < k; s++)
        out->rank[s] = (LsProcessBytes){.state = bytes_read(&out->cut, s, want->state), .arenas = 1,
                                        .input = out->ring * bytes_read(&out->cut, s, want->input)};
    return true;
}

/* Times of the phases. In orders that run W within B, what belongs to W and is run for the first
 * time counts as W. */
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
        if (phase == LS_PHASE_B && node != LS_NO_ID && !step->again
            && out->stages.phase[node] == LS_PHASE_W)
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

static bool plan_stages(LsArena *arena, const LsPipelineWant *want, LsPipelinePlan *out, char *why,
                        size_t room)
{
    out->plan = ls_arena_alloc(arena, want->stages, sizeof *out->plan);
    out->of = ls_arena_alloc(arena, want->stages, sizeof *out->of);
    out->fits = true;
    out->bottleneck = 0;
    out->peak = 0;
    for (uint32_t k = 0; k < want->stages; k++) {
        LsPipeWish wish = {.plan = want->plan,
                           .flow = &out->flow[k],
                           .keeps_one = keeps_one(out, want),
                           .budget = ls_budget_of_arena(&want->budget, &out->rank[k]),
                           .memo = want->memo->plans};
        wish.hints.recompute = policy_of(out, want);
        wish.plan.unproven = true;
        wish.plan.compare = false;
        if (!ls_pipe_plan(arena, &out->cut, k, &wish, &out->plan[k], why, room)) {
            if (why[0] != '\0')
                return false;
            out->fits = false;
        }
        set_times(out, k, want->micros);
    }
    return true;
}

static bool plan_cut(LsArena *arena, const LsProb *p, const LsPipelineWant *want,
                     LsPipelinePlan *out, char *why, size_t room)
{
    if (!connect(arena, p, want, out, why, room) || !plan_stages(arena, want, out, why, room))
        return false;
    const LsPipelineRun run = {&out->cut, out->flow, want->micros, out->of, want->link};
    out->times = ls_pipeline_simulate(arena, &run);
    return true;
}

/* A cut that was planned; over: bytes that its ranks took beyond the budget. */
typedef struct Tried { const uint32_t *stage; int64_t over[LS_MOST_STAGES]; } Tried;

/* The search for a cut within the budget. */
typedef struct Within {
    LsArena *arena;
    const LsProb *p;
    const LsPipelineWant *want;
    LsStageOptions o;
    Tried tried[CUTS + SEARCHES + 1]; uint32_t ntried;
    /* Margins. low: those of the last cut, whose ranks took too much; high: those with which there
     * was no cut. */
    int64_t low[LS_MOST_STAGES], high[LS_MOST_STAGES], now[LS_MOST_STAGES];
    bool none;                  /* there is a high */
    int64_t steps;              /* by how many times of what the ranks took too much the margins
                                 * grow: more where this changed no cut */
    double bound;
} Within;

/* The same cut as before; NULL: it is new. */
static const Tried *find_tried(const Within *w, const LsStages *s)
{
    for (uint32_t k = 0; k < w->ntried; k++) {
        uint32_t i = 0;
        while (i < w->p->n && w->tried[k].stage[i] == s->stage[i])
            i++;
        if (i == w->p->n)
            return &w->tried[k];
    }
    return NULL;
}

static const Tried *add_tried(Within *w, const LsPipelinePlan *out)
{
    Tried *t = &w->tried[w->ntried++];
    t->stage = out->stages.stage;
    for (uint32_t r = 0; r < w->want->stages; r++) {
        const int64_t over = ls_pipeline_rank_bytes(out, r) - w->want->budget.bytes;
        t->over[r] = over > 0 ? over : 0;
    }
    return t;
}

static void widen(Within *w, const Tried *last)
{
    for (uint32_t r = 0; r < w->want->stages; r++) {
        w->low[r] = w->now[r];
        w->now[r] = w->none ? (w->low[r] + w->high[r]) / 2 : w->now[r] + w->steps * last->over[r];
    }
}

static void narrow(Within *w)
{
    w->none = true;
    for (uint32_t r = 0; r < w->want->stages; r++) {
        w->high[r] = w->now[r];
        w->now[r] = (w->low[r] + w->high[r]) / 2;
    }
}

/* Cuts with margins for each rank. Returns whether the ranks of some cut keep the budget. False
 * with a sentence: an error, or there is no cut at all (*none). */
static bool find_with_margins(Within *w, LsPipelinePlan *out, bool *none, char *why, size_t room)
{
    w->o.margin = w->now;
    w->steps = 1;
    for (int k = 0; k < SEARCHES && w->ntried < CUTS; k++) {
        if (!ls_stages_find(w->arena, w->p, &w->o, &out->stages, why, room)) {
            *none = k == 0;
            if (k == 0)
                return false;
            narrow(w);
            continue;
        }
        w->bound = k == 0 ? out->stages.bound : w->bound;
        const Tried *t = find_tried(w, &out->stages);
        w->steps = t != NULL ? 2 * w->steps : 1;
        if (t == NULL) {
            if (!plan_cut(w->arena, w->p, w->want, out, why, room))
                return false;
            if (out->fits)
                return true;
            t = add_tried(w, out);
        }
        widen(w, t);
    }
    return false;
}

/* The next smaller number of five bits. */
static int64_t smaller_room(int64_t bytes)
{
    int64_t unit = 1;
    while (bytes / unit >= 32)
        unit *= 2;
    return (bytes - 1) / unit * unit;
}

/* Whether no other cut can be much better. */
static bool is_near_bound(const LsPipelinePlan *plan, double bound)
{
    static const double NEAR = 1.005;
    return plan->fits && plan->bottleneck <= NEAR * bound;
}

/* Cuts with less room for all ranks whose estimates are better than what is found. The sizes do not
 * depend on the budget, so larger budgets try nearly all that smaller ones do. best: the best so
 * far, if it fits. */
static bool find_with_less(Within *w, LsPipelinePlan *best, char *why, size_t room)
{
    w->o.margin = NULL;
    for (int k = 0; k < SEARCHES && !is_near_bound(best, w->bound); k++) {
        LsPipelinePlan next = {.order = best->order, .keep = best->keep};
        w->o.budget = smaller_room(w->o.budget);
        if (w->o.budget <= 0 || !ls_stages_find(w->arena, w->p, &w->o, &next.stages, why, room))
            break;
        if (find_tried(w, &next.stages) != NULL
            || (best->fits && next.stages.estimate >= best->bottleneck))
            continue;
        if (!plan_cut(w->arena, w->p, w->want, &next, why, room))
            break;
        add_tried(w, &next);
        if (next.fits && (!best->fits || next.bottleneck < best->bottleneck))
            *best = next;
    }
    return best->fits;
}

/* Cuts within the budget. Returns whether the ranks of some cut keep it. */
static bool find_within(LsArena *arena, const LsProb *p, const LsPipelineWant *want,
                        const LsStageOptions *o, LsPipelinePlan *out, char *why, size_t room)
{
    Within *w = ls_arena_alloc(arena, 1, sizeof *w);
    bool none = false;
    *w = (Within){.arena = arena, .p = p, .want = want, .o = *o};
    if (find_with_margins(w, out, &none, why, room))
        add_tried(w, out);
    if (none || !find_with_less(w, out, why, room))
        return false;
    out->bound = w->bound;
    return true;
}

/* By persistent tensor: bytes in a rank whose nodes read it. */
static const int64_t *bytes_beside(LsArena *arena, const LsProb *p, const LsPipelineWant *want)
{
    int64_t *bytes = ls_arena_alloc(arena, p->nt + 1u, sizeof *bytes);
    for (uint32_t t = 0; t < p->nt; t++)
        bytes[t] = want->state[t] + want->input[t];
    return bytes;
}

LsPipelineMemo *ls_pipeline_memo_new(LsArena *arena)
{
    LsPipelineMemo *m = ls_arena_alloc(arena, 1, sizeof *m);
    m->plans = ls_plan_memo_new(arena);
    return m;
}

bool ls_pipeline_cut(LsArena *arena, const LsProb *p, const LsPipelineWant *want, LsKeepMode keep,
                     LsStages *out, char *why, size_t room)
{
    LsStages *known = &want->memo->cut[keep];
    const LsStageOptions o = {.stages = want->stages, .micros = want->micros, .keep = keep};
    if (known->k == 0 && !ls_stages_find(arena, p, &o, known, why, room))
        return false;
    *out = *known;
    return true;
}

static bool plan_pipeline(LsArena *arena, const LsProb *p, const LsPipelineWant *want,
                          LsOrderKind order, LsKeepMode keep, LsPipelinePlan *out, char *why,
                          size_t room)
{
    LsStageOptions o = {.stages = want->stages,
                        .micros = want->micros,
                        .order = order,
                        .keep = keep,
                        .budget = want->budget.bytes};
    assert(want->budget.bytes <= 0 || want->budget.of == LS_BUDGET_OF_PROCESS);
    *out = (LsPipelinePlan){.order = order, .keep = keep};
    o.state = want->budget.bytes > 0 ? bytes_beside(arena, p, want) : NULL;
    if (want->budget.bytes > 0 && find_within(arena, p, want, &o, out, why, room))
        return true;
    /* This cut is the same for every budget: what it takes at least is a budget that can be
     * kept. */
    if (!ls_pipeline_cut(arena, p, want, keep, &out->stages, why, room)
        || !plan_cut(arena, p, want, out, why, room))
        return false;
    out->bound = out->stages.bound;
    return true;
}

bool ls_pipeline_plan(LsArena *arena, const LsProb *p, const LsPipelineWant *want,
                      LsOrderKind order, LsKeepMode keep, LsPipelinePlan *out, char *why,
                      size_t room)
{
    LsPipelineWant known = *want;
    if (known.memo == NULL)
        known.memo = ls_pipeline_memo_new(arena);
    return plan_pipeline(arena, p, &known, order, keep, out, why, room);
}
