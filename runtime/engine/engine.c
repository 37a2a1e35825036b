/* runtime/engine/engine.c -- see engine.h.
 *
 * On a device, the first run of a phase issues its steps one by one, so that libraries load their
 * code. Then the phase is recorded once for each slot of batches, and every later run is one
 * replay, unless its hooks read values. If the program has dependencies between steps, the phase is
 * recorded a second time with them. A phase that is cut is recorded in pieces, without them. */
#include "runtime/engine/engine.h"

#include "runtime/base/tensor_copy.h"
#include "runtime/engine/member_runs.h"
#include "runtime/engine/run_steps.h"

#include <stdlib.h>

static uint32_t count_addresses(const LsProgram *p)
{
    const LsPhaseTable *phase[] = {&p->phase.once, &p->phase.train, &p->phase.last,
                                   &p->phase.update, &p->phase.eval};
    uint32_t n = 0;
    for (int f = 0; f < 5; f++)
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
    g->arg =
        calloc((n + 1) * (size_t)(p->ensemble.members > 0 ? p->ensemble.lanes : 1), sizeof *g->arg);
    g->patch = calloc(n + 1, sizeof *g->patch);
    if (!g->arg || !g->patch)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (uint32_t k = 0; k < n; k++) {
        g->arg[k] = ls_memory_at(m, p->argument.address[k]);
        if (p->argument.address[k].space == LS_AT_INPUT)
            g->patch[g->npatch++] = (LsPatch){k, (uint32_t)p->argument.address[k].offset};
    }
    return p->ensemble.members == 0 || ls_members_open(g, n, e);
}

static void forget(LsDevice *d, LsRecording *r)
{
    for (int s = 0; s < LS_DEVICE_SLOTS; s++)
        if (r->of[s] != NULL)
            d->kind->forget(d, r->of[s]);
}

bool ls_engine_cut(LsEngine *g, LsCuts cuts, LsError *e)
{
    g->cuts = cuts;
    g->piece = calloc(cuts.n + 1u, sizeof *g->piece);
    return g->piece != NULL || ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

void ls_engine_close(LsEngine *g)
{
    if (g->m != NULL && g->m->device != NULL) {
        for (uint32_t k = 0; g->piece != NULL && k <= g->cuts.n; k++)
            forget(g->m->device, &g->piece[k]);
        forget(g->m->device, &g->train);
        forget(g->m->device, &g->last);
        forget(g->m->device, &g->update);
        forget(g->m->device, &g->eval);
    }
    ls_members_close(g);
    free(g->arg);
    free(g->patch);
    free(g->piece);
    *g = (LsEngine){0};
}

static void point_inputs(LsEngine *g, const LsLoader *l, char *at)
{
    g->input = at;
    for (uint32_t k = 0; k < g->npatch; k++)
        g->arg[g->patch[k].arg] = at + l->offset[g->patch[k].input];
}

/* Input k of a batch, whose array lies on the device. */
static LsDeviceCopy copy_of(const LsEngine *g, const LsLoader *l, const LsBatch *b, uint32_t k)
{
    const LsTensor *t = &g->p->input[k].t;
    const LsSource *s = &l->pass.data->source[k];
    const LsWalk w = ls_walk_start(t);
    const int64_t bytes = ls_data_bytes(t->type, g->p->real_bytes);
    const int64_t first = s->whole ? 0 : ls_batch_first(&l->pass, b->number);
    const bool turned = w.channels > 1;
    return (LsDeviceCopy){.to = g->input + l->offset[k],
                          .from = s->there + first * s->per_sample * bytes,
                          .samples = s->whole ? 1 : b->valid,
                          .of = s->whole ? 1 : g->p->division.samples,
                          .rows = turned ? s->per_sample / (w.channels * w.spatial) : 1,
                          .channels = w.channels,
                          .places = turned ? w.spatial : s->per_sample,
                          .bytes = bytes};
}

/* Copies what lies on the device already there, and all else from the host, side by side at
 * once. */
static void feed_device(LsEngine *g, const LsLoader *l, const LsBatch *b)
{
    LsDevice *d = g->m->device;
    const LsDataset *data = l->pass.data;
    for (uint32_t k = 0, from = 0; k <= g->p->ninput; k++) {
        const bool there = k < g->p->ninput && data != NULL && data->source[k].there != NULL;
        if (!there && k < g->p->ninput)
            continue;
        if (k > from)
            d->kind->feed(d, g->slot, l->offset[from], b->input + l->offset[from],
                          l->offset[k] - l->offset[from]);
        if (there) {
            const LsDeviceCopy copy = copy_of(g, l, b, k);
            d->kind->take(d, &copy);
        }
        from = k + 1;
    }
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
    feed_device(g, l, b);
}

void *ls_stage_address(const LsMemory *m, const LsStage *s, uint32_t slot, LsAddress a)
{
    if (a.space != LS_AT_ARENA)
        return ls_memory_at(m, a);
    const LsRegion *r = s->region + s->nregion - 1;
    while (r > s->region && a.offset < r->at)
        r--;
    return m->arena + (s->at - m->arena_at) + a.offset + slot % r->copies * r->bytes;
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

/* ---- on a device ---- */

/* The steps of a phase from one cut to the next, or all of them. */
typedef struct Piece { uint32_t from, to; LsRecording *of; } Piece;

static bool is_cut(const LsEngine *g, const LsPhaseTable *t)
{
    return g->piece != NULL
           && t == (g->p->phase.last.nstep > 0 ? &g->p->phase.last : &g->p->phase.train);
}

static uint32_t count_pieces(const LsEngine *g, const LsPhaseTable *t)
{
    return is_cut(g, t) ? g->cuts.n + 1 : 1;
}

static Piece piece_of(LsEngine *g, const LsPhaseTable *t, uint32_t k)
{
    const LsProgram *p = g->p;
    if (is_cut(g, t))
        return (Piece){k > 0 ? g->cuts.step[k - 1] + 1 : 0,
                       k < g->cuts.n ? g->cuts.step[k] + 1 : t->nstep, &g->piece[k]};
    return (Piece){0, t->nstep,
                   t == &p->phase.eval     ? &g->eval
                   : t == &p->phase.last   ? &g->last
                   : t == &p->phase.update ? &g->update
                                           : &g->train};
}

/* Issues the steps one by one. A hook that reads results waits for them, so a failure is attributed
 * to its step. */
static bool give_out(LsEngine *g, const LsPhaseTable *t, Piece of, const LsHook *hook, int nhook)
{
    LsDevice *d = g->m->device;
    for (uint32_t k = of.from; k < of.to && d->error.code == LS_EXIT_DONE; k++) {
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

static void record(LsEngine *g, const LsPhaseTable *t, Piece of, const LsHook *hook, int nhook)
{
    LsDevice *d = g->m->device;
    /* hooks need the time of each step */
    bool both = t->wait_of != NULL && nhook == 0 && !is_cut(g, t);
    for (int s = 0; s < LS_DEVICE_SLOTS && d->error.code == LS_EXIT_DONE; s++) {
        if (t != &g->p->phase.update)         /* which reads no batch; there may be none yet */
            point_inputs(g, g->loader, d->input[s]);
        for (int way = 0;
             way < 1 + both && (way == 0 || of.of->of[s] != NULL) && d->kind->record(d); way++) {
            g->apart = way == 1;
            give_out(g, t, of, hook, nhook);
            g->apart = false;
            of.of->of[s] = d->kind->recorded(d, of.of->of[s]);
        }
    }
}

/* Runs a phase on a device. A recording includes the hooks of the first run and stays valid for
 * later runs: hooks that can be replayed are present in every run of a phase, or in none. */
static bool run_there(LsEngine *g, const LsPhaseTable *t, const LsHook *hook, int nhook)
{
    LsDevice *d = g->m->device;
    const uint32_t pieces = count_pieces(g, t);
    const bool first = piece_of(g, t, 0).of->of[g->slot] == NULL;
    bool plain = true;
    for (int h = 0; h < nhook; h++)
        plain &= hook[h].done != NULL;
    d->update = g->run.update;
    if (!d->kind->begin(d, g->slot, &g->run))
        return false;
    for (uint32_t k = 0; k < pieces && d->error.code == LS_EXIT_DONE; k++) {
        const Piece of = piece_of(g, t, k);
        if (plain && of.of->of[g->slot] != NULL)
            d->kind->replay(d, of.of->of[g->slot]);
        else
            give_out(g, t, of, hook, nhook);
        if (k + 1 < pieces && g->run.apply)
            g->cuts.between(g->cuts.self, k);
    }
    d->kind->end(d, g->slot, ls_memory_at(g->m, t->loss), ls_memory_at(g->m, t->weight));
    for (int h = 0; h < nhook && d->error.code == LS_EXIT_DONE; h++)
        if (hook[h].done)
            hook[h].done(hook[h].self);
    for (uint32_t k = 0; k < pieces && plain && first; k++)
        record(g, t, piece_of(g, t, k), hook, nhook);
    return d->error.code == LS_EXIT_DONE;
}

bool ls_engine_run(LsEngine *g, const LsPhaseTable *t, const LsHook *hook, int nhook, LsError *e)
{
    if (g->m->device != NULL)
        return run_there(g, t, hook, nhook) || ls_device_ok(g->m->device, e);
    if (g->p->ensemble.members > 0)
        ls_members_run(g, t, hook, nhook);
    else
        ls_steps_run(&g->run, t, g->arg, hook, nhook);
    return true;
}

bool ls_engine_loss(const LsEngine *g, const LsPhaseTable *t, int slot, int64_t valid, LsLoss *loss,
                    LsError *e)
{
    LsDevice *d = g->m->device;
    if (g->p->ensemble.members > 0)
        return *loss = ls_members_loss(g), true;
    loss->weight = g->p->target.sums ? 0 : (double)valid;
    if (d != NULL)
        return d->kind->loss(d, slot, &loss->value, &loss->weight) || ls_device_ok(d, e);
    loss->value = ls_real_at(ls_memory_at(g->m, t->loss), g->p->real_bytes);
    if (t->weight.space != LS_AT_NONE)
        loss->weight = ls_real_at(ls_memory_at(g->m, t->weight), g->p->real_bytes);
    return true;
}

bool ls_engine_evaluate(LsEngine *g, const LsLoader *l, const LsBatch *b, const LsHook *hook,
                        int nhook, LsLoss *loss, LsError *e)
{
    const LsPhaseTable *t = &g->p->phase.eval;
    ls_engine_feed(g, l, b);
    g->run.first = true;
    g->run.apply = false;
    g->run.part = g->run.slice = 0;
    g->run.share = 1;
    return ls_engine_run(g, t, hook, nhook, e)
           && ls_engine_loss(g, t, g->slot, b->valid, loss, e);
}
