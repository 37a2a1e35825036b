/* runtime/library/net.c -- see net.h. A net is a trainer without options, files and reports, whose
 * dataset is the caller's batch. */
#include "runtime/library/net.h"

#include "runtime/engine/thread_pool.h"
#include "runtime/trainer/trainer_state.h"
#include "runtime/trainer/update_run.h"

#include <inttypes.h>
#include <stdlib.h>

struct LsNet {
    LsTrainer t;
    volatile sig_atomic_t none; /* no signal ends a net */
};

static bool fits(const LsProgram *p, const LsNetMemory *m, LsError *e)
{
    const struct { const char *name; const void *at; size_t bytes; int64_t least; } part[] = {
        {"state", m->state, m->state_bytes, p->bytes.state},
        {"arena", m->arena, m->arena_bytes, p->bytes.arena},
    };
    for (int k = 0; k < 2; k++) {
        if (part[k].at == NULL || (uintptr_t)part[k].at % LS_NET_ALIGN != 0)
            return ls_fail(e, LS_EXIT_USAGE, "the %s must lie at a multiple of %d bytes",
                           part[k].name, LS_NET_ALIGN);
        if (part[k].bytes < (size_t)part[k].least)
            return ls_fail(e, LS_EXIT_USAGE,
                           "the %s has %zu bytes, and the plan needs %" PRId64 " of them",
                           part[k].name, part[k].bytes, part[k].least);
    }
    return true;
}

static bool open_net(LsNet *n, const LsProgram *p, const LsNetMemory *m, uint64_t seed, LsError *e)
{
    LsTrainer *t = &n->t;
    t->p = p;
    t->ending.signal = &n->none;
    t->place.seed = seed;
    if (!ls_memory_open_at(&t->memory, p, m->state, m->arena, e)
        || !ls_engine_open(&t->engine, p, &t->memory, e)
        || !ls_loader_open(&t->feed.loader, p, 0, e)
        || !ls_dataset_in_memory(&t->feed.train, p, e)
        || !ls_member_state_open(&t->members, p, &t->o, seed, e))
        return false;
    t->engine.run.pool = ls_pool_create(t->threads);
    if (t->engine.run.pool == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "cannot start %d threads", t->threads);
    t->engine.run.seed = seed;
    t->told.scale = ls_scaling_read(&t->memory);
    return true;
}

LsNet *ls_net_open(const LsProgram *p, LsNetMemory memory, int threads, uint64_t seed, LsError *e)
{
    if (!fits(p, &memory, e))
        return NULL;
    LsNet *n = calloc(1, sizeof *n);
    if (n == NULL) {
        ls_fail(e, LS_EXIT_FAIL, "out of memory");
        return NULL;
    }
    n->t.threads = threads > 1 ? threads : 1;
    if (open_net(n, p, &memory, seed, e))
        return n;
    ls_net_close(n);
    return NULL;
}

void ls_net_close(LsNet *n)
{
    if (n == NULL)
        return;
    LsTrainer *t = &n->t;
    ls_loader_close(&t->feed.loader);
    ls_member_state_close(&t->members);
    ls_pool_destroy(t->engine.run.pool);
    ls_engine_close(&t->engine);
    ls_dataset_close(&t->feed.train);
    ls_memory_close(&t->memory);
    free(n);
}

/* Takes the caller's arrays as the data. */
static bool take(LsNet *n, const void *const *input, int64_t samples, LsError *e)
{
    LsTrainer *t = &n->t;
    if (samples < 1)
        return ls_fail(e, LS_EXIT_DATA, "a batch has at least one sample");
    for (uint32_t k = 0; k < t->p->ninput; k++) {
        if (input[k] == NULL)
            return ls_fail(e, LS_EXIT_DATA, "there is no array for '%s'", t->p->input[k].t.name);
        ls_dataset_point(&t->feed.train, k, input[k], samples);
    }
    return true;
}

bool ls_net_step(LsNet *n, const void *const *input, int64_t samples, double rate, double *loss,
                 LsError *e)
{
    LsTrainer *t = &n->t;
    const LsDivision *d = &t->p->division;
    const int64_t batches = ls_update_batches(d), most = ls_batch_samples(d) * batches;
    const int64_t least = most - ls_batch_samples(d) + 1;       /* no batch is empty */
    if (!take(n, input, samples, e))
        return false;
    if (samples < least || samples > most)
        return ls_fail(e, LS_EXIT_DATA, "an update takes %" PRId64 " to %" PRId64 " samples", least,
                       most);
    t->feed.pass = (LsPass){.data = &t->feed.train,
                            .parts = d->micro_batches,
                            .seed = t->place.seed,
                            .end = batches * ls_micro_batches(d)};
    t->rate = (LsRate){.lr = rate};
    t->updates = t->place.update + 1;
    ls_loader_begin(&t->feed.loader, &t->feed.pass);
    const bool ok = ls_update_run(t, e) && ls_update_land(t, e);
    *loss = t->under_way.loss;
    return ok;
}

bool ls_net_evaluate(LsNet *n, const void *const *input, int64_t samples, double *loss, LsError *e)
{
    LsTrainer *t = &n->t;
    LsScore score;
    if (t->p->phase.eval.nstep == 0)
        return ls_fail(e, LS_EXIT_USAGE, "the program has no evaluation form");
    if (!take(n, input, samples, e)
        || !ls_evaluate(&t->engine, &t->feed.loader, &t->members, &t->feed.train, NULL, 0,
                        &n->none, &score, e))
        return false;
    *loss = score.loss;
    return true;
}

bool ls_net_save(LsNet *n, const char *path, LsError *e)
{
    return ls_checkpoint_save(&n->t.memory, &n->t.place, path, e);
}

bool ls_net_load(LsNet *n, const char *path, LsError *e)
{
    LsTrainer *t = &n->t;
    if (!ls_checkpoint_load(&t->memory, &t->place, path, e))
        return false;
    t->engine.run.seed = t->place.seed;
    t->told.scale = ls_scaling_read(&t->memory);
    return true;
}

int64_t ls_net_updates(const LsNet *n) { return n->t.place.update; }

void *ls_net_state(LsNet *n, uint32_t k, const LsStateTensor **t)
{
    if (k >= n->t.p->nstate)
        return NULL;
    *t = &n->t.p->state[k];
    return ls_memory_at(&n->t.memory, (*t)->t.at);
}
