/* runtime/pipeline/stage_run.c -- see stage_run.h.
 *
 * A message's sender keeps the bytes until the receiver has them, and waits for this before the
 * turn that the message names. Receivers ask for what their phase needs when the plan has its bytes
 * free, and wait right before the first step that reads it. (scheduler/pipeline/turn_order.h proves
 * that this ends.) */
#include "runtime/pipeline/stage_run.h"

#include <stdlib.h>

static uint32_t end_of_args(const LsPhaseTable *t)
{
    uint32_t end = 0;
    for (uint32_t k = 0; k < t->nstep; k++)
        end = t->step[k].arg + t->step[k].narg > end ? t->step[k].arg + t->step[k].narg : end;
    return end;
}

/* Resolves the arguments of a plan in the slots where turns have it. */
static bool open_args(LsStageRun *r, uint32_t plan)
{
    const LsStage *s = r->s;
    const LsPhaseTable *t = &s->plan[plan].table;
    LsStageArgs *a = &r->args[plan];
    a->first = t->nstep > 0 ? t->step[0].arg : 0;
    a->n = end_of_args(t) - a->first;
    for (uint32_t k = 0; k < s->nturn; k++)
        if (s->turn[k].plan == plan && s->turn[k].slot >= a->slots)
            a->slots = s->turn[k].slot + 1u;
    a->arg = calloc((size_t)a->slots * a->n + 1, sizeof *a->arg);
    for (uint32_t slot = 0; a->arg && slot < a->slots; slot++)
        for (uint32_t k = 0; k < a->n; k++)
            a->arg[(size_t)slot * a->n + k] =
                ls_stage_address(r->engine.m, s, slot, r->engine.p->argument.address[a->first + k]);
    return a->arg != NULL;
}

bool ls_stage_open(LsStageRun *r, const LsProgram *p, uint32_t number, const LsMemory *m,
                   LsComm *comm, LsLoader *l, LsLoss *loss, LsError *e)
{
    const LsStage *s = &p->pipeline.stage[number];
    const size_t slots = s->slots;
    *r = (LsStageRun){.s = s,
                      .number = number,
                      .comm = comm,
                      .loader = l,
                      .loss = loss,
                      .engine = {.p = p, .m = m, .loader = l, .stage = s}};
    r->input = calloc(slots + 1, sizeof *r->input);
    r->sending = calloc(slots * s->nsend + 1, sizeof *r->sending);
    r->sends = calloc(slots * s->nsend + 1, 1);
    r->receiving = calloc(s->nreceive + 1u, sizeof *r->receiving);
    r->receives = calloc(s->nreceive + 1u, 1);
    bool ok = r->input && r->sending && r->sends && r->receiving && r->receives;
    for (uint32_t plan = 0; ok && plan < s->nplan; plan++)
        ok = open_args(r, plan);
    return ok ? ls_stage_check_open(&r->check, s, e) : ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

void ls_stage_close(LsStageRun *r)
{
    for (int plan = 0; plan < LS_STAGE_PLANS; plan++)
        free(r->args[plan].arg);
    ls_stage_check_close(&r->check);
    free(r->input);
    free(r->sending);
    free(r->sends);
    free(r->receiving);
    free(r->receives);
    *r = (LsStageRun){0};
}

/* ---- messages ---- */

static bool finish_send(LsStageRun *r, uint32_t slot, uint32_t message, LsError *e)
{
    const uint32_t at = slot * r->s->nsend + message;
    if (!r->sends[at])
        return true;
    r->sends[at] = false;
    return r->comm->engine->wait(r->comm, &r->sending[at], e)
           && ls_stage_check_left(&r->check, at, &r->s->plan[0].send[message], e);
}

/* Waits for the sends that end before a turn. */
static bool finish_sends(LsStageRun *r, const LsTurn *t, LsError *e)
{
    const LsStage *s = r->s;
    for (uint32_t k = 0; k < s->nsend; k++) {
        const LsMessage *m = &s->plan[0].send[k];       /* those of all plans are alike */
        if (m->until == t->phase && t->part >= m->lag
            && !finish_send(r, (t->part - m->lag) % s->slots, k, e))
            return false;
        if (t->phase == LS_STAGE_B && m->phase == LS_STAGE_F && m->other == LS_STAGE_F
            && !finish_send(r, t->slot, k, e))
            return false;
    }
    return true;
}

static bool finish_all_sends(LsStageRun *r, LsError *e)
{
    for (uint32_t slot = 0; slot < r->s->slots; slot++)
        for (uint32_t k = 0; k < r->s->nsend; k++)
            if (!finish_send(r, slot, k, e))
                return false;
    return true;
}

static bool send_after(LsStageRun *r, const LsTurn *t, uint32_t step, bool last, LsError *e)
{
    const LsStage *s = r->s;
    for (uint32_t k = 0; k < s->nsend; k++) {
        const LsMessage *m = &s->plan[t->plan].send[k];
        const uint32_t at = t->slot * s->nsend + k;
        if (m->phase != t->phase || m->step != step || (m->other == LS_STAGE_LATE && !last))
            continue;
        const void *from = ls_stage_address(r->engine.m, s, t->slot, m->at);
        ls_stage_check_sends(&r->check, at, from, m->bytes);
        if (!r->comm->engine->send(r->comm, (int)m->peer, m->tag, from, m->bytes, &r->sending[at],
                                   e))
            return false;
        r->sends[at] = true;
    }
    return true;
}

static bool ask(LsStageRun *r, const LsTurn *t, LsError *e)
{
    const LsStage *s = r->s;
    for (uint32_t k = 0; k < s->nreceive; k++) {
        const LsMessage *m = &s->plan[t->plan].receive[k];
        if (m->phase != t->phase)
            continue;
        void *to = ls_stage_check_asks(&r->check, k,
                                       ls_stage_address(r->engine.m, s, t->slot, m->at), m->bytes);
        if (!r->comm->engine->receive(r->comm, (int)m->peer, m->tag, to, m->bytes, &r->receiving[k],
                                      e))
            return false;
        r->receives[k] = true;
    }
    return true;
}

/* Waits for what step `step` of the turn's plan reads, or at the end of the phase for all that is
 * left. */
static bool await(LsStageRun *r, const LsTurn *t, uint32_t step, bool all, LsError *e)
{
    for (uint32_t k = 0; k < r->s->nreceive; k++) {
        const LsMessage *m = &r->s->plan[t->plan].receive[k];
        if (!r->receives[k] || (!all && m->step != step))
            continue;
        r->receives[k] = false;
        if (!r->comm->engine->wait(r->comm, &r->receiving[k], e)
            || !ls_stage_check_arrived(&r->check, k, m,
                                       ls_stage_address(r->engine.m, r->s, t->slot, m->at), e))
            return false;
    }
    return true;
}

/* ---- phases ---- */

static void run_step(LsStageRun *r, uint32_t plan, uint32_t k, void **arg, bool watched)
{
    const LsStep *step = &r->s->plan[plan].table.step[k];
    const LsHook *hook = r->hook + plan * (uint32_t)r->nhook;
    for (int h = 0; watched && h < r->nhook; h++)
        if (hook[h].before)
            hook[h].before(hook[h].self, k);
    step->run(&r->engine.run, arg + (step->arg - r->args[plan].first));
    for (int h = 0; watched && h < r->nhook; h++)
        if (hook[h].after)
            hook[h].after(hook[h].self, k);
}

static bool run_phase(LsStageRun *r, const LsTurn *t, LsError *e)
{
    const bool last = r->engine.run.apply, watched = r->nhook > 0 && (last || r->always);
    const uint32_t *first = r->s->plan[t->plan].first;
    const uint32_t asks = r->s->plan[t->plan].ask[t->phase], end = first[t->phase + 1];
    void **arg = r->args[t->plan].arg + (size_t)t->slot * r->args[t->plan].n;
    for (uint32_t k = first[t->phase]; k < end; k++) {
        if ((k == asks && !ask(r, t, e)) || !await(r, t, k, false, e))
            return false;
        run_step(r, t->plan, k, arg, watched);
        if (!send_after(r, t, k, last, e))
            return false;
    }
    return (asks < end || ask(r, t, e)) && await(r, t, 0, true, e);
}

/* Points the arguments of a slot at the inputs of its micro-batch. */
static bool feed(LsStageRun *r, const LsTurn *t, int64_t batch, LsError *e)
{
    const LsAddress *at = r->engine.p->argument.address + r->args[t->plan].first;
    void **arg = r->args[t->plan].arg + (size_t)t->slot * r->args[t->plan].n;
    if (!r->s->reads_input)
        return true;
    const LsBatch *b = ls_loader_at(r->loader, batch, e);
    if (b == NULL)
        return e->code != LS_EXIT_DONE
                   ? false
                   : ls_fail(e, LS_EXIT_CHECK, "the loader has no batch %lld", (long long)batch);
    r->input[t->slot] = b->input;
    for (uint32_t k = 0; k < r->args[t->plan].n; k++)
        if (at[k].space == LS_AT_INPUT)
            arg[k] = b->input + r->loader->offset[at[k].offset];
    return true;
}

static void read_loss(LsStageRun *r, const LsTurn *turn)
{
    const LsProgram *p = r->engine.p;
    const LsPhaseTable *t = &r->s->plan[turn->plan].table;
    LsLoss *to = &r->loss[turn->part];
    if (t->loss.space == LS_AT_NONE)
        return;
    to->value = ls_real_at(ls_stage_address(r->engine.m, r->s, turn->slot, t->loss), p->real_bytes);
    to->weight = t->weight.space != LS_AT_NONE
        ? ls_real_at(ls_stage_address(r->engine.m, r->s, turn->slot, t->weight), p->real_bytes)
        : p->target.sums ? 0 : (double)r->engine.run.valid;
}

static void set_run(LsStageRun *r, const LsPartRun *part, uint32_t slot)
{
    struct LsPool *const pool = r->engine.run.pool;
    r->engine.run = part->run;
    r->engine.run.pool = pool;
    r->engine.at_slot = slot;
    r->engine.input = r->input[slot];
}

static bool run_turn(LsStageRun *r, const LsTurn *t, const LsPartRun *part, int end, LsError *e)
{
    if (t->phase == LS_STAGE_F && !feed(r, t, part->batch, e))
        return false;
    set_run(r, part, t->slot);
    if (!run_phase(r, t, e))
        return false;
    if (t->phase == end)            /* it may have been made again in phase B */
        read_loss(r, t);
    if (t->phase == end && r->s->reads_input && !part->run.apply)
        ls_loader_done(r->loader, part->batch);
    return true;
}

/* The phase that ends a micro-batch. */
static int end_of(const LsStage *s)
{
    int end = LS_STAGE_B;
    for (uint32_t k = 0; k < s->nturn; k++)
        end = s->turn[k].phase > end ? s->turn[k].phase : end;
    return end;
}

const LsTurn *ls_stage_last_turn(const LsStage *s, int64_t part)
{
    const LsTurn *last = NULL;
    for (uint32_t k = 0; k < s->nturn; k++)
        if (s->turn[k].part == part)
            last = &s->turn[k];
    return last;
}

/* Copies of states, before anything runs that changes these: not all stages wait for each other in
 * a step. */
static bool exchange_copies(LsStageRun *r, LsError *e)
{
    const LsTurn start = {.phase = LS_STAGE_START};
    return ask(r, &start, e) && send_after(r, &start, 0, true, e) && await(r, &start, 0, true, e)
           && finish_all_sends(r, e);
}

bool ls_stage_update(LsStageRun *r, const LsPartRun *part, int64_t n, LsError *e)
{
    const LsStage *s = r->s;
    const int end = end_of(s);
    const LsAddress arena = {LS_AT_ARENA, 0};
    ls_stage_check_update(&r->check, ls_stage_address(r->engine.m, s, 0, arena), s->arena_bytes);
    if (!exchange_copies(r, e))
        return false;
    for (uint32_t k = 0; k < s->nturn; k++)
        if (!finish_sends(r, &s->turn[k], e)
            || (s->turn[k].part < n && !run_turn(r, &s->turn[k], &part[s->turn[k].part], end, e)))
            return false;
    LsTurn late = *ls_stage_last_turn(s, n - 1);
    late.phase = LS_STAGE_LATE;
    set_run(r, &part[n - 1], late.slot);
    if (!run_phase(r, &late, e))
        return false;
    if (s->reads_input)
        ls_loader_done(r->loader, part[n - 1].batch);
    return finish_all_sends(r, e);
}
