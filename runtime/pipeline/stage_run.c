/* runtime/pipeline/stage_run.c -- see stage_run.h.
 *
 * A message's sender keeps the bytes until the receiver has them, and waits for this before the turn that the message names.
 * Receivers ask for what their phase needs when it begins, and wait right before the first step that reads it. (scheduler/pipeline/pipe_flow.h proves that this ends.) */
#include "runtime/pipeline/stage_run.h"

#include <stdlib.h>

static uint32_t last_arg(const LsPhaseTable *t)
{
    uint32_t end = 0;
    for (uint32_t k = 0; k < t->nstep; k++)
        end = t->step[k].arg + t->step[k].narg > end ? t->step[k].arg + t->step[k].narg : end;
    return end;
}

bool ls_stage_open(LsStageRun *r, const LsProgram *p, uint32_t number, const LsMemory *m, LsComm *comm, LsLoader *l,
                   LsLoss *loss, LsError *e)
{
    const LsStage *s = &p->stage[number];
    const size_t slots = s->slots;
    *r = (LsStageRun){.s = s, .number = number, .comm = comm, .loader = l, .loss = loss, .engine = {.p = p, .m = m, .loader = l, .stage = s}};
    r->first_arg = s->table.nstep > 0 ? s->table.step[0].arg : 0;
    r->narg = last_arg(&s->table) - r->first_arg;
    r->arg = calloc(slots * r->narg + 1, sizeof *r->arg);
    r->input = calloc(slots + 1, sizeof *r->input);
    r->sending = calloc(slots * s->nsend + 1, sizeof *r->sending);
    r->sends = calloc(slots * s->nsend + 1, 1);
    r->receiving = calloc(s->nreceive + 1u, sizeof *r->receiving);
    r->receives = calloc(s->nreceive + 1u, 1);
    if (!r->arg || !r->input || !r->sending || !r->sends || !r->receiving || !r->receives)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (uint32_t slot = 0; slot < s->slots; slot++)
        for (uint32_t k = 0; k < r->narg; k++)
            r->arg[slot * r->narg + k] = ls_stage_address(m, s, slot, p->address[r->first_arg + k]);
    return true;
}

void ls_stage_close(LsStageRun *r)
{
    free(r->arg);
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
    return r->comm->engine->wait(r->comm, &r->sending[at], e);
}

/* Waits for the sends that end before a turn. */
static bool finish_sends(LsStageRun *r, const LsTurn *t, LsError *e)
{
    const LsStage *s = r->s;
    for (uint32_t k = 0; k < s->nsend; k++) {
        const LsMessage *m = &s->send[k];
        if (m->until == t->phase && t->part >= m->lag && !finish_send(r, (t->part - m->lag) % s->slots, k, e))
            return false;
        if (t->phase == LS_STAGE_B && m->phase == LS_STAGE_F && m->other == LS_STAGE_F && !finish_send(r, t->slot, k, e))
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

static bool send_after(LsStageRun *r, int phase, uint32_t step, uint32_t slot, bool last, LsError *e)
{
    const LsStage *s = r->s;
    for (uint32_t k = 0; k < s->nsend; k++) {
        const LsMessage *m = &s->send[k];
        const uint32_t at = slot * s->nsend + k;
        if (m->phase != phase || m->step != step || (m->other == LS_STAGE_LATE && !last))
            continue;
        if (!r->comm->engine->send(r->comm, (int)m->peer, m->tag, ls_stage_address(r->engine.m, s, slot, m->at), m->bytes,
                                   &r->sending[at], e))
            return false;
        r->sends[at] = true;
    }
    return true;
}

static bool ask(LsStageRun *r, int phase, uint32_t slot, LsError *e)
{
    const LsStage *s = r->s;
    for (uint32_t k = 0; k < s->nreceive; k++) {
        const LsMessage *m = &s->receive[k];
        if (m->phase != phase)
            continue;
        if (!r->comm->engine->receive(r->comm, (int)m->peer, m->tag, ls_stage_address(r->engine.m, s, slot, m->at), m->bytes,
                                      &r->receiving[k], e))
            return false;
        r->receives[k] = true;
    }
    return true;
}

/* Waits for what step `step` reads, or at the end of the phase for all that is left. */
static bool await(LsStageRun *r, uint32_t step, bool all, LsError *e)
{
    for (uint32_t k = 0; k < r->s->nreceive; k++) {
        if (!r->receives[k] || (!all && r->s->receive[k].step != step))
            continue;
        r->receives[k] = false;
        if (!r->comm->engine->wait(r->comm, &r->receiving[k], e))
            return false;
    }
    return true;
}

/* ---- phases ---- */

static void run_step(LsStageRun *r, uint32_t k, void **arg, bool watched)
{
    const LsStep *step = &r->s->table.step[k];
    for (int h = 0; watched && h < r->nhook; h++)
        if (r->hook[h].before)
            r->hook[h].before(r->hook[h].self, k);
    step->run(&r->engine.run, arg + (step->arg - r->first_arg));
    for (int h = 0; watched && h < r->nhook; h++)
        if (r->hook[h].after)
            r->hook[h].after(r->hook[h].self, k);
}

static bool run_phase(LsStageRun *r, int phase, uint32_t slot, LsError *e)
{
    const bool last = r->engine.run.apply, watched = r->nhook > 0 && (last || r->always);
    void **arg = r->arg + (size_t)slot * r->narg;
    if (!ask(r, phase, slot, e))
        return false;
    for (uint32_t k = r->s->first[phase]; k < r->s->first[phase + 1]; k++) {
        if (!await(r, k, false, e))
            return false;
        run_step(r, k, arg, watched);
        if (!send_after(r, phase, k, slot, last, e))
            return false;
    }
    return await(r, 0, true, e);
}

/* Points the arguments of a slot at the inputs of its micro-step. */
static bool feed(LsStageRun *r, uint32_t slot, int64_t batch, LsError *e)
{
    const LsProgram *p = r->engine.p;
    if (!r->s->reads_input)
        return true;
    const LsBatch *b = ls_loader_at(r->loader, batch, e);
    if (b == NULL)
        return e->code != LS_EXIT_DONE ? false : ls_fail(e, LS_EXIT_CHECK, "the loader has no batch %lld", (long long)batch);
    r->input[slot] = b->input;
    for (uint32_t k = 0; k < r->narg; k++)
        if (p->address[r->first_arg + k].space == LS_AT_INPUT)
            r->arg[(size_t)slot * r->narg + k] = b->input + r->loader->offset[p->address[r->first_arg + k].offset];
    return true;
}

static void read_loss(LsStageRun *r, uint32_t slot, int64_t part)
{
    const LsProgram *p = r->engine.p;
    const LsPhaseTable *t = &r->s->table;
    if (t->loss.space == LS_AT_NONE)
        return;
    r->loss[part].value = ls_real_at(ls_stage_address(r->engine.m, r->s, slot, t->loss), p->real_bytes);
    r->loss[part].weight = t->weight.space != LS_AT_NONE
        ? ls_real_at(ls_stage_address(r->engine.m, r->s, slot, t->weight), p->real_bytes)
        : p->loss_sums ? 0 : (double)r->engine.run.valid;
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
    if (t->phase == LS_STAGE_F && !feed(r, t->slot, part->batch, e))
        return false;
    set_run(r, part, t->slot);
    if (!run_phase(r, t->phase, t->slot, e))
        return false;
    if (t->phase == end)            /* it may have been made again in phase B */
        read_loss(r, t->slot, t->part);
    if (t->phase == end && r->s->reads_input && !part->run.apply)
        ls_loader_done(r->loader, part->batch);
    return true;
}

/* The phase that ends a micro-step. */
static int end_of(const LsStage *s)
{
    int end = LS_STAGE_B;
    for (uint32_t k = 0; k < s->nturn; k++)
        end = s->turn[k].phase > end ? s->turn[k].phase : end;
    return end;
}

bool ls_stage_update(LsStageRun *r, const LsPartRun *part, int64_t n, LsError *e)
{
    const LsStage *s = r->s;
    const int end = end_of(s);
    uint32_t slot = 0;
    if (!ask(r, LS_STAGE_START, 0, e) || !send_after(r, LS_STAGE_START, 0, 0, true, e) || !await(r, 0, true, e))
        return false;
    for (uint32_t k = 0; k < s->nturn; k++) {
        const LsTurn *t = &s->turn[k];
        if (!finish_sends(r, t, e))
            return false;
        if (t->part >= n)
            continue;
        slot = t->part + 1 == n ? t->slot : slot;
        if (!run_turn(r, t, &part[t->part], end, e))
            return false;
    }
    set_run(r, &part[n - 1], slot);
    if (!run_phase(r, LS_STAGE_LATE, slot, e))
        return false;
    if (s->reads_input)
        ls_loader_done(r->loader, part[n - 1].batch);
    return finish_all_sends(r, e);
}
