/* runtime/engine/engine.c -- see engine.h.
 *
 * On a device, the first run of a phase issues its steps one by one, so that libraries load their
 * code. Then the phase is recorded once for each slot of batches, and every later run is one
 * replay, unless its hooks read values. If the program has dependencies between steps, the phase is
 * recorded a second time with them. */
#include "runtime/engine/engine.h"

#include "runtime/engine/member_runs.h"

#include <stdlib.h>

static uint32_t count_addresses(const LsProgram *p)
{
    const LsPhaseTable *phase[] = {&p->train, &p->last, &p->update, &p->eval};
    uint32_t n = 0;
    for (int f = 0; f < 4; f++)
        for (uint32_t k = 0; k < phase[f]->nstep; k++) {
            uint32_t end = phase[f]->step[k].arg + phase[f]->step[k].narg;
            n = end > n ? end : n;
        }
    return n;
}

bool ls_engine_open(LsEngine *g, const LsProgram *p, const LsMemory *m, LsError *e)
{
    uint32_t n = count_addresses(p);
    *g = (LsEngine){.p = p, .m = m, .run.device = m->device};
    g->arg = calloc((n + 1) * (size_t)(p->members > 0 ? p->lanes : 1), sizeof *g->arg);
    g->patch = calloc(n + 1, sizeof *g->patch);
    if (!g->arg || !g->patch)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (uint32_t k = 0; k < n; k++) {
        g->arg[k] = ls_memory_at(m, p->address[k]);
        if (p->address[k].space == LS_AT_INPUT)
            g->patch[g->npatch++] = (LsPatch){k, (uint32_t)p->address[k].offset};
    }
    return p->members == 0 || ls_members_open(g, n, e);
}

static void forget(LsDevice *d, LsRecording *r)
{
    for (int s = 0; s < LS_DEVICE_SLOTS; s++)
        if (r->of[s] != NULL)
            d->kind->forget(d, r->of[s]);
}

void ls_engine_close(LsEngine *g)
{
    if (g->m != NULL && g->m->device != NULL) {
        forget(g->m->device, &g->train);
        forget(g->m->device, &g->last);
        forget(g->m->device, &g->eval);
    }
    ls_members_close(g);
    free(g->arg);
    free(g->patch);
    *g = (LsEngine){0};
}

static void point_inputs(LsEngine *g, const LsLoader *l, char *at)
{
    g->input = at;
    for (uint32_t k = 0; k < g->npatch; k++)
        g->arg[g->patch[k].arg] = at + l->offset[g->patch[k].input];
}

void ls_engine_feed(LsEngine *g, const LsLoader *l, const LsBatch *b)
{
    LsDevice *d = g->m->device;
    g->run.valid = b->valid;
    g->loader = l;
    if (d == NULL) {
        point_inputs(g, l, b->input);
        return;
    }
    g->slot = (g->slot + 1) % LS_DEVICE_SLOTS;
    point_inputs(g, l, d->input[g->slot]);
    d->kind->feed(d, g->slot, b->input, l->slot_bytes);
}

void *ls_stage_address(const LsMemory *m, const LsStage *s, uint32_t slot, LsAddress a)
{
    if (a.space != LS_AT_ARENA)
        return ls_memory_at(m, a);
    return m->arena + (s->at - m->arena_at) + a.offset
           + (a.offset >= s->transient && slot > 0 ? s->first_slot + (slot - 1) * s->slot_bytes : 0);
}

void *ls_engine_view(const LsEngine *g, LsAddress a, int64_t bytes)
{
    if (g->stage != NULL && a.space != LS_AT_INPUT)
        return ls_stage_address(g->m, g->stage, g->at_slot, a);
    if (a.space == LS_AT_INPUT)
        return ls_memory_look(g->m, g->input + g->loader->offset[a.offset], bytes);
    return ls_memory_view(g->m, a, bytes);
}

bool ls_engine_fed(LsEngine *g, LsError *e)
{
    LsDevice *d = g->m->device;
    return d == NULL || d->kind->fed(d, g->slot) || ls_device_ok(d, e);
}

void ls_steps_run(LsRun *run, const LsPhaseTable *t, void **arg, const LsHook *hook, int nhook)
{
    for (uint32_t k = 0; k < t->nstep; k++) {
        for (int h = 0; h < nhook; h++)
            if (hook[h].before)
                hook[h].before(hook[h].self, k);
        t->step[k].run(run, arg + t->step[k].arg);
        for (int h = 0; h < nhook; h++)
            if (hook[h].after)
                hook[h].after(hook[h].self, k);
    }
}

/* Issues the steps one by one. A hook that reads results waits for them, so a failure is attributed
 * to its step. */
static bool give_out(LsEngine *g, const LsPhaseTable *t, const LsHook *hook, int nhook)
{
    LsDevice *d = g->m->device;
    for (uint32_t k = 0; k < t->nstep && d->error.code == LS_EXIT_DONE; k++) {
        const LsStep *s = d->at = &t->step[k];
        if (g->apart)
            d->kind->follow(d, k, t->wait + t->wait_of[k], t->wait_of[k + 1] - t->wait_of[k]);
        for (int h = 0; h < nhook; h++)
            if (hook[h].before)
                hook[h].before(hook[h].self, k);
        d->kind->enter(d, s->name);
        s->run(&g->run, g->arg + s->arg);
        d->kind->leave(d);
        for (int h = 0; h < nhook; h++)
            if (hook[h].after)
                hook[h].after(hook[h].self, k);
    }
    d->at = NULL;
    return d->error.code == LS_EXIT_DONE;
}

static void record(LsEngine *g, const LsPhaseTable *t, LsRecording *r, const LsHook *hook,
                   int nhook)
{
    LsDevice *d = g->m->device;
    bool both = t->wait_of != NULL && nhook == 0;       /* hooks need the time of each step */
    for (int s = 0; s < LS_DEVICE_SLOTS && d->error.code == LS_EXIT_DONE; s++) {
        point_inputs(g, g->loader, d->input[s]);
        for (int way = 0; way < 1 + both && (way == 0 || r->of[s] != NULL) && d->kind->record(d);
             way++) {
            g->apart = way == 1;
            give_out(g, t, hook, nhook);
            g->apart = false;
            r->of[s] = d->kind->recorded(d, r->of[s]);
        }
    }
}

/* Runs a phase on a device. A recording includes the hooks of the first run and stays valid for
 * later runs: hooks that can be replayed are present in every run of a phase, or in none. */
static bool run_there(LsEngine *g, const LsPhaseTable *t, const LsHook *hook, int nhook)
{
    LsDevice *d = g->m->device;
    bool plain = true;
    for (int h = 0; h < nhook; h++)
        plain &= hook[h].done != NULL;
    LsRecording *r = t == &g->p->eval ? &g->eval : t == &g->p->last ? &g->last : &g->train;
    d->update = g->run.update;
    if (!d->kind->begin(d, g->slot, &g->run))
        return false;
    if (plain && r->of[g->slot] != NULL)
        d->kind->replay(d, r->of[g->slot]);
    else
        give_out(g, t, hook, nhook);
    d->kind->end(d, g->slot, ls_memory_at(g->m, t->loss), ls_memory_at(g->m, t->weight));
    for (int h = 0; h < nhook && d->error.code == LS_EXIT_DONE; h++)
        if (hook[h].done)
            hook[h].done(hook[h].self);
    if (plain && r->of[g->slot] == NULL)
        record(g, t, r, hook, nhook);
    return d->error.code == LS_EXIT_DONE;
}

bool ls_engine_run(LsEngine *g, const LsPhaseTable *t, const LsHook *hook, int nhook, LsError *e)
{
    if (g->m->device != NULL)
        return run_there(g, t, hook, nhook) || ls_device_ok(g->m->device, e);
    if (g->p->members > 0)
        ls_members_run(g, t, hook, nhook);
    else
        ls_steps_run(&g->run, t, g->arg, hook, nhook);
    return true;
}

bool ls_engine_loss(const LsEngine *g, const LsPhaseTable *t, int slot, int64_t valid, LsLoss *loss,
                    LsError *e)
{
    LsDevice *d = g->m->device;
    if (g->p->members > 0)
        return *loss = ls_members_loss(g), true;
    loss->weight = g->p->loss_sums ? 0 : (double)valid;
    if (d != NULL)
        return d->kind->loss(d, slot, &loss->value, &loss->weight) || ls_device_ok(d, e);
    loss->value = ls_real_at(ls_memory_at(g->m, t->loss), g->p->real_bytes);
    if (t->weight.space != LS_AT_NONE)
        loss->weight = ls_real_at(ls_memory_at(g->m, t->weight), g->p->real_bytes);
    return true;
}
