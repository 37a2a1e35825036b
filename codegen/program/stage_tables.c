/* codegen/program/stage_tables.c -- see the header. */
#include "codegen/program/stage_tables.h"

#include <inttypes.h>

const int64_t *ls_copies_place(const LsPipeCut *cut, const LsProblem *train, LsAddresses *a)
{
    int64_t *at = ls_arena_alloc(a->cx->arena, cut->ncopy + 1u, sizeof *at);
    for (uint32_t k = 0; k < cut->ncopy; k++) {
        at[k] = a->state_bytes;
        a->state_bytes += ls_align(train->dag.tensor[cut->copy[k].tensor].bytes, LS_ALIGNMENT);
    }
    return at;
}

_Static_assert((int)LS_PIPE_PLANS == LS_STAGE_PLANS, "programs have the plans of the scheduler");
static const char *const suffix[LS_PIPE_PLANS] = {"", "_kept"};

bool ls_stage_phase_init(LsCtx *cx, LsPhaseText *ph, const LsCode *c, uint32_t stage, uint32_t plan)
{
    if (!ls_phase_init(cx, ph, c, &c->stage[stage].phase[plan],
                       ls_arena_printf(cx->arena, "stage%u%s", stage, suffix[plan])))
        return false;
    ph->stage = true;
    for (uint32_t k = 0; k < c->cut->ncopy; k++)
        if (c->cut->copy[k].to == stage)
            ph->first[c->cut->copy[k].tensor] = ph->at[c->cut->copy[k].tensor] =
                (LsAddress){LS_AT_STATE, c->copy_at[k]};
    return true;
}

typedef struct Stage {          /* by one of its plans */
    const LsCode *c;
    const LsPhaseText *ph;
    uint32_t number, plan;
    uint32_t first[LS_STAGE_PHASES + 1];        /* by phase: its first step */
    uint32_t ask[LS_STAGE_PHASES];              /* by phase: the step before which what it receives
                                                 * may arrive */
    LsEmit *e;
} Stage;

static const LsPipeLayout *layout(const Stage *x) { return &x->c->stage[x->number].plan->layout; }

static const LsPipeRuns *runs(const Stage *x)
{
    return &x->c->stage[x->number].plan->layout.of[x->plan];
}

/* Runs of the plan are steps, but for the nodes that begin phases. Where such a node runs, the
 * bytes of what arrives are free. */
static void find_first_steps(Stage *x)
{
    const uint32_t *begin = x->c->stage[x->number].plan->graph.begin;
    const LsPlan *plan = x->ph->plan;
    uint32_t run = 0, step = 0;
    for (int phase = 0; phase <= LS_STAGE_PHASES; phase++)
        x->first[phase] = UINT32_MAX;
    for (uint32_t s = 0; s <= plan->nstep; s++) {
        for (int phase = 0; phase <= LS_STAGE_PHASES; phase++)
            if (run >= runs(x)->phase_at[phase] && x->first[phase] == UINT32_MAX)
                x->first[phase] = step;
        for (int phase = 0; phase < LS_STAGE_PHASES && s < plan->nstep && !plan->step[s].free;
             phase++)
            if (plan->step[s].id == begin[phase])
                x->ask[phase] = step;
        run += s < plan->nstep && !plan->step[s].free;
        step += s < plan->nstep && ls_phase_runs(x->ph, s);
    }
    for (int phase = 0; phase < LS_STAGE_PHASES; phase++)
        x->ask[phase] = begin[phase] != LS_NO_ID ? x->ask[phase] : x->first[phase];
}

/* Where a tensor of a message lies, and its step: that which makes it last in its phase, or that
 * which first reads it there. Plans may have nothing that reads it, as alternatives do without it,
 * or nothing before the next phase: it is awaited at once then, as the plan takes it to be there,
 * or gone, when the next step runs. */
typedef struct Found { int64_t offset; uint32_t step; } Found;

static bool reads(const LsDagNode *n, uint32_t tensor) { return ls_id_in(n->in, n->nin, tensor); }

static int result_of(const LsDagNode *n, uint32_t tensor)
{
    for (uint32_t k = 0; k < n->nout; k++)
        if (n->out[k] == tensor)
            return (int)k;
    return -1;
}

static Found find(const Stage *x, const LsPipeMove *m, bool sent)
{
    const LsPlan *plan = x->ph->plan;
    const int phase = sent ? m->made : m->read;
    Found f = {-1, sent ? x->first[phase] : x->ask[phase]};
    uint32_t run = 0, step = 0;
    bool read = false;
    for (uint32_t s = 0; s < plan->nstep; s++) {
        const LsPlanStep *st = &plan->step[s];
        if (st->free)
            continue;
        const bool here = run >= runs(x)->phase_at[phase] && run < runs(x)->phase_at[phase + 1];
        const LsDagNode *n = &x->ph->p->dag.node[st->id];
        const int k = here ? result_of(n, m->tensor) : -1;
        if (k >= 0 && ls_phase_runs(x->ph, s) == sent) {
            f.offset = plan->offset[st->offset + (uint32_t)k];
            f.step = sent ? step : f.step;
        }
        if (!sent && here && !read && ls_phase_runs(x->ph, s) && reads(n, m->tensor)) {
            read = true;
            f.step = step;
        }
        run++;
        step += ls_phase_runs(x->ph, s);
    }
    return f;
}

static uint32_t print_copies(const Stage *x, bool sent)
{
    const LsPipeCut *cut = x->c->cut;
    uint32_t n = 0;
    for (uint32_t k = 0; k < cut->ncopy; k++) {
        const LsPipeCopy *m = &cut->copy[k];
        if ((sent ? m->from : m->to) != x->number)
            continue;
        fprintf(x->e->to,
                "    {S(%" PRId64 "), %" PRId64
                ", %u, %u, LS_STAGE_START, LS_STAGE_START, 0, 0, LS_STAGE_TO_THE_END},   /* ",
                sent ? x->ph->at[m->tensor].offset : x->c->copy_at[k],
                x->ph->p->dag.tensor[m->tensor].bytes, sent ? m->to : m->from, cut->nmove + k);
        ls_emit_comment(x->e->to, x->ph->p->dag.tensor[m->tensor].name);
        fprintf(x->e->to, " */\n");
        n++;
    }
    return n;
}

static const char *lag_text(const LsPipeMove *m, char text[16])
{
    snprintf(text, 16, "%" PRIu32, m->lag);
    return m->lag == LS_TO_THE_END ? "LS_STAGE_TO_THE_END" : text;
}

static uint32_t print_messages(const Stage *x, bool sent)
{
    uint32_t n = 0;
    char lag[16];
    ls_emit_line(x->e, "static const LsMessage %s_%s[] = {", x->ph->name,
                 sent ? "send" : "receive");
    for (uint32_t k = 0; k < x->c->cut->nmove; k++) {
        const LsPipeMove *m = &x->c->cut->move[k];
        if ((sent ? m->from : m->to) != x->number || m->bytes == 0)
            continue;
        const Found f = find(x, m, sent);
        fprintf(x->e->to, "    {A(%" PRId64 "), %" PRId64 ", %u, %u, %d, %d, %u, %d, %s},   /* ",
                f.offset, m->bytes, sent ? m->to : m->from, k, sent ? m->made : m->read,
                sent ? m->read : m->made, f.step, m->until, lag_text(m, lag));
        ls_emit_comment(x->e->to, x->ph->p->dag.tensor[m->tensor].name);
        fprintf(x->e->to, " */\n");
        n++;
    }
    n += print_copies(x, sent);
    ls_emit_line(x->e, "{.bytes = 0}");
    ls_emit_line(x->e, "};");
    return n;
}

/* The least number of slots that is a multiple of all copies, and for as many inputs as
 * micro-batches are under way. There need not be more than parts. */
static uint32_t count_slots(const Stage *x)
{
    const LsPipeLayout *l = layout(x);
    const uint64_t parts = (uint64_t)x->c->parts;
    uint64_t slots = x->c->stage[x->number].flow->most;
    for (uint32_t k = 0; k < l->nregion && slots < parts; k++) {
        uint64_t a = slots, b = l->region[k].copies;
        while (b != 0) {
            const uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        slots = slots / a * l->region[k].copies;
    }
    return (uint32_t)(slots < parts ? slots : parts);
}

static void print_regions(const Stage *x)
{
    const LsPipeLayout *l = layout(x);
    ls_emit_line(x->e, "static const LsRegion stage%u_region[] = {", x->number);
    for (uint32_t k = 0; k < l->nregion; k++)
        ls_emit_line(x->e, "{%" PRId64 ", %" PRId64 ", %u},", l->region[k].at, l->region[k].bytes,
                     l->region[k].copies);
    ls_emit_line(x->e, "};");
}

static void print_turns(const Stage *x)
{
    const LsPipeFlow *f = x->c->stage[x->number].flow;
    const uint32_t slots = count_slots(x);
    ls_emit_line(x->e, "static const LsTurn stage%u_turn[] = {", x->number);
    for (uint32_t k = 0; k < f->nturn; k++)
        fprintf(x->e->to, "%s{%d, %d, %u, %u},%s", k % 8 == 0 ? "    " : " ", f->turn[k].phase,
                f->turn[k].plan, f->turn[k].micro % slots, f->turn[k].micro,
                k % 8 == 7 || k + 1 == f->nturn ? "\n" : "");
    ls_emit_line(x->e, "};");
}

static void print_plan(const Stage *x)
{
    ls_emit_line(x->e, "{");
    ls_phase_print_entry(x->ph, "table", x->e);
    fprintf(x->e->to, "            .first = {");
    for (int phase = 0; phase <= LS_STAGE_PHASES; phase++)
        fprintf(x->e->to, "%s%u", phase > 0 ? ", " : "", x->first[phase]);
    fprintf(x->e->to, "}, .ask = {");
    for (int phase = 0; phase < LS_STAGE_PHASES; phase++)
        fprintf(x->e->to, "%s%u", phase > 0 ? ", " : "", x->ask[phase]);
    fprintf(x->e->to, "},\n");
    ls_emit_line(x->e, ".send = %s_send, .receive = %s_receive,", x->ph->name, x->ph->name);
    ls_emit_line(x->e, "},");
}

static void print_stage(const Stage *by_plan, uint32_t nsend, uint32_t nreceive)
{
    const Stage *x = by_plan;
    const LsPipeFlow *f = x->c->stage[x->number].flow;
    const LsPipeLayout *l = layout(x);
    ls_emit_line(x->e, "{");
    ls_emit_line(x->e, ".plan = {");
    for (uint32_t k = 0; k < l->nplan; k++)
        print_plan(&by_plan[k]);
    ls_emit_line(x->e, "}, .nplan = %u, .nsend = %u, .nreceive = %u,", l->nplan, nsend, nreceive);
    ls_emit_line(x->e,
                 ".at = %" PRId64
                 ", .region = stage%u_region, .nregion = %u, .arena_bytes = %" PRId64
                 ", .slots = %u, "
                 ".reads_input = %s,",
                 x->c->stage[x->number].at, x->number, l->nregion, l->arena, count_slots(x),
                 f->reads ? "true" : "false");
    ls_emit_line(x->e, ".turn = stage%u_turn, .nturn = %u,", x->number, f->nturn);
    ls_emit_line(x->e, "},");
}

void ls_stages_print(const LsCode *c, const LsPhaseText phase[], LsEmit *e)
{
    Stage x[LS_MOST_STAGES][LS_PIPE_PLANS];
    uint32_t nsend[LS_MOST_STAGES], nreceive[LS_MOST_STAGES];
    ls_emit_line(e, "\n/* ---- stages ---- */");
    for (uint32_t k = 0; k < c->cut->k; k++) {
        for (uint32_t plan = 0; plan < c->stage[k].plan->layout.nplan; plan++) {
            x[k][plan] = (Stage){
                .c = c, .ph = &phase[plan * c->cut->k + k], .number = k, .plan = plan, .e = e};
            find_first_steps(&x[k][plan]);
            nsend[k] = print_messages(&x[k][plan], true);
            nreceive[k] = print_messages(&x[k][plan], false);
        }
        print_regions(&x[k][0]);
        print_turns(&x[k][0]);
    }
    ls_emit_line(e, "static const LsStage stage[] = {");
    for (uint32_t k = 0; k < c->cut->k; k++)
        print_stage(x[k], nsend[k], nreceive[k]);
    ls_emit_line(e, "};");
}

/* The stage that changes a state. What none changes may have readers in several, as statistics that
 * are frozen do. */
static uint32_t stage_of_state(const LsCode *c, const LsPhaseText phase[], LsValueId v)
{
    for (uint32_t k = 0; k < c->cut->k; k++) {
        const LsDag *d = &phase[k].p->dag;
        const uint32_t t = (uint32_t)phase[k].p->tensor_of[v.i];
        for (uint32_t i = 0; i < d->nnode; i++)
            if (ls_id_in(d->node[i].upd, d->node[i].nupd, t))
                return k;
    }
    return LS_NO_STAGE;
}

void ls_state_stages_print(const LsCode *c, const LsPhaseText phase[], LsEmit *e)
{
    ls_emit_line(e, "static const uint8_t state_stage[] = {");
    for (uint32_t k = 0; k < c->addresses->nstate; k++)
        fprintf(e->to, "%s%u,%s", k % 16 == 0 ? "    " : " ",
                stage_of_state(c, phase, c->addresses->state[k].v), k % 16 == 15 ? "\n" : "");
    fprintf(e->to, "%s0\n", c->addresses->nstate % 16 == 0 ? "    " : " ");
    ls_emit_line(e, "};");
}
