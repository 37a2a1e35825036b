/* runtime/library/net.c -- see net.h: an instance, its updates and its checkpoints. */
#include "runtime/library/net.h"
#include "runtime/library/net_state.h"

#include "runtime/base/tensor_copy.h"
#include "runtime/update/evaluate.h"
#include "runtime/update/short_batch.h"
#include "runtime/update/update_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- open and close ---- */

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

/* A device takes its memory itself. */
static bool open_memory(LsNet *n, const LsProgram *p, const LsNetMemory *m, LsError *e)
{
    LsTraining *t = &n->t;
    if (p->accelerator.kind == NULL)
        return ls_memory_open_at(&t->memory, p, m->state, m->arena, e);
    n->fetched = calloc(p->ninput + 1u, sizeof *n->fetched);
    return n->fetched != NULL ? ls_memory_open(&t->memory, p, e)
                              : ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

static bool open_pool(LsNet *n, const LsNetThreads *how, LsError *e)
{
    LsTraining *t = &n->t;
    const bool own = how->parallel_for == NULL;
    t->threads = how->count > 1 && t->memory.device == NULL ? how->count : 1;
    t->engine.run.pool = own ? ls_pool_create(t->threads)
                             : ls_pool_borrow(how->parallel_for, how->context, t->threads);
    n->opened_by = own && t->threads > 1 ? getpid() : 0;
    return t->engine.run.pool != NULL
           || ls_fail(e, LS_EXIT_FAIL, "cannot start %d threads", t->threads);
}

bool ls_net_has_threads(const LsNet *n, LsError *e)
{
    return n->opened_by == 0 || n->opened_by == getpid()
           || ls_fail(e, LS_EXIT_USAGE,
                      "this process was forked from the one that opened the net, and has none of "
                      "its %d threads: open another here, or open it with one thread",
                      n->t.threads);
}

/* The state of a run that has made no update. */
static void set_out(LsNet *n, uint64_t seed)
{
    ls_training_begin(&n->t, seed);
    n->begun = false;
}

static bool open_net(LsNet *n, const LsProgram *p, const LsNetMemory *m, const LsNetThreads *how,
                     uint64_t seed, LsError *e)
{
    LsTraining *t = &n->t;
    t->p = p;
    n->noise_seed = t->rules.check_clip = -1;
    if (!open_memory(n, p, m, e) || !ls_engine_open(&t->engine, p, &t->memory, e)
        || !ls_training_open_loader(t, 0, e)
        || !ls_dataset_in_memory(&t->feed.train, p, e)
        || !ls_member_state_open(&t->members, p, 0, seed, e) || !open_pool(n, how, e))
        return false;
    set_out(n, seed);
    return true;
}

LsNet *ls_net_open(const LsProgram *p, LsNetMemory memory, LsNetThreads threads, uint64_t seed,
                   LsError *e)
{
    if (p->accelerator.kind == NULL && !fits(p, &memory, e))
        return NULL;
    LsNet *n = calloc(1, sizeof *n);
    if (n == NULL) {
        ls_fail(e, LS_EXIT_FAIL, "out of memory");
        return NULL;
    }
    if (open_net(n, p, &memory, &threads, seed, e))
        return n;
    ls_net_close(n);
    return NULL;
}

void ls_net_close(LsNet *n)
{
    LsError gone = {0};
    if (n == NULL)
        return;
    LsTraining *t = &n->t;
    ls_dump_close(&n->seen);
    for (uint32_t k = 0; n->fetched != NULL && k < t->p->ninput; k++)
        free(n->fetched[k]);
    free(n->fetched);
    ls_training_stop(t, ls_net_has_threads(n, &gone));
    ls_training_close(t);
    free(n);
}

bool ls_net_begin(LsNet *n, uint64_t seed, LsError *e)
{
    ls_net_wait(n, NULL, &(LsError){0});     /* whatever became of it */
    if (!ls_net_after(n, e))
        return false;
    ls_memory_begin(&n->t.memory);
    set_out(n, seed);
    return ls_memory_ok(&n->t.memory, e);
}

/* ---- updates ---- */

static bool take_input(LsNet *n, uint32_t k, const void *at, int64_t samples, bool unlabelled,
                       LsError *e)
{
    LsTraining *t = &n->t;
    if (at == NULL && unlabelled && t->p->input[k].is_label) {
        ls_dataset_zero(&t->feed.train, k);
        return true;
    }
    if (at == NULL && t->p->input[k].usual != LS_USUAL_NONE) {
        ls_dataset_usual(&t->feed.train, k);
        return true;
    }
    if (at == NULL)
        return ls_fail(e, LS_EXIT_DATA, "there is no array for '%s'", t->p->input[k].t.name);
    return ls_net_point(n, k, at, samples, e);
}

bool ls_net_take(LsNet *n, const void *const *input, int64_t samples, bool unlabelled, LsError *e)
{
    LsTraining *t = &n->t;
    if (!ls_net_has_threads(n, e))
        return false;
    if (samples < 1)
        return ls_fail(e, LS_EXIT_DATA, "a batch has at least one sample");
    if (!ls_net_after(n, e))
        return false;
    t->feed.train.samples = samples;
    for (uint32_t k = 0; k < t->p->ninput; k++)
        if (!take_input(n, k, input[k], samples, unlabelled, e))
            return false;
    return true;
}

bool ls_net_divide(LsNet *n, int64_t samples, LsError *e)
{
    LsTraining *t = &n->t;
    const LsDivision *d = &t->p->division;
    const int64_t batches = ls_update_batches(d), most = ls_batch_samples(d) * batches;
    const int64_t least = most - ls_batch_samples(d) + 1;       /* no batch is empty */
    if (samples < least || samples > most)
        return ls_fail(e, LS_EXIT_DATA, "an update takes %" PRId64 " to %" PRId64 " samples", least,
                       most);
    t->feed.pass = (LsPass){.data = &t->feed.train,
                            .parts = d->micro_batches,
                            .seed = t->place.seed,
                            .end = batches * ls_micro_batches(d)};
    return ls_short_part_trains(t->p, t->feed.train.opt.data, samples, samples % d->samples, e);
}

/* Draws the samples of a private update. */
static bool draw(LsNet *n, int64_t samples, LsError *e)
{
    LsTraining *t = &n->t;
    if (samples > LS_NET_MOST)
        return ls_fail(e, LS_EXIT_DATA, "an update draws of at most 2^60 samples");
    if (!n->begun || samples != t->place.samples) {
        if (!ls_private_begin(&t->privacy, t->p, n->noise_seed, &t->place, samples, e))
            return false;
        memcpy(t->engine.run.noise, t->privacy.noise.word, sizeof t->engine.run.noise);
        t->place.samples = samples;
        n->begun = true;
    }
    const int64_t update = t->place.update + 1;
    t->feed.pass = (LsPass){.data = &t->feed.train,
                            .seed = t->place.seed,
                            .first = t->place.cursor,
                            .drawn = {t->privacy.rate, t->privacy.draw, update, update}};
    return true;
}

bool ls_net_wait(LsNet *n, double *loss, LsError *e)
{
    LsTraining *t = &n->t;
    if (!ls_update_land(t, e)) {
        ls_training_drop(t, t->place.update, t->place.cursor);
        return false;
    }
    if (loss != NULL)
        *loss = t->under_way.loss;
    return true;
}

bool ls_net_step(LsNet *n, const void *const *input, int64_t samples, double rate, double *loss,
                 LsError *e)
{
    LsTraining *t = &n->t;
    if (!ls_rate_is_lr(rate))
        return ls_fail(e, LS_EXIT_USAGE, "the rate is %g; it must be at least 0, and finite", rate);
    if (!ls_net_take(n, input, samples, false, e)
        || !(ls_is_private(t->p) ? draw(n, samples, e) : ls_net_divide(n, samples, e)))
        return false;
    const int64_t update = t->place.update, cursor = t->place.cursor;
    t->rate = (LsRate){.lr = rate};
    t->updates = update + 1;
    ls_loader_begin(&t->feed.loader, &t->feed.pass);
    const bool ran = ls_update_run(t, e);
    if (!ls_net_before(n, ran ? e : &(LsError){0}) || !ran) {
        ls_training_drop(t, update, cursor);
        return false;
    }
    return loss == NULL || ls_net_wait(n, loss, e);
}

bool ls_net_evaluate(LsNet *n, const void *const *input, int64_t samples, double *loss, LsError *e)
{
    LsTraining *t = &n->t;
    LsScore score;
    if (t->p->phase.eval.nstep == 0)
        return ls_fail(e, LS_EXIT_USAGE, "the program has no evaluation form");
    if (!ls_net_wait(n, NULL, e) || !ls_net_take(n, input, samples, false, e)
        || !ls_short_batch_evaluates(t->p, &t->feed.train, e)
        || !ls_evaluate(t, &t->feed.train, &(LsOnlooker){0}, &score, e))
        return false;
    if (loss != NULL)
        *loss = score.loss;
    return true;
}

/* ---- checkpoints ---- */

bool ls_net_save(LsNet *n, const char *path, LsError *e)
{
    return ls_net_after(n, e) && ls_net_wait(n, NULL, e)
           && ls_checkpoint_save(&n->t.memory, &n->t.place, path, e);
}

bool ls_net_save_to(LsNet *n, void *to, size_t room, int64_t *bytes, LsError *e)
{
    return ls_net_after(n, e) && ls_net_wait(n, NULL, e)
           && ls_checkpoint_save_to(&n->t.memory, &n->t.place, to, room, bytes, e);
}

/* A refused checkpoint leaves the net as it was. */
static bool load_file(LsNet *n, const LsFile *f, LsError *e)
{
    LsTraining *t = &n->t;
    LsPlace place = {0};
    ls_net_wait(n, NULL, &(LsError){0});        /* whatever became of it */
    if (!ls_net_after(n, e) || !ls_checkpoint_look(&t->memory, &place, f, e))
        return false;
    const bool continues = ls_private_continues(t->p, &place, f->path, e);
    ls_place_free(&place);
    if (!continues || !ls_checkpoint_load_from(&t->memory, &place, f, e))
        return false;
    set_out(n, place.seed);
    t->place = place;
    return true;
}

bool ls_net_load(LsNet *n, const char *path, LsError *e)
{
    LsFile f;
    if (!ls_file_map(&f, path, e))
        return false;
    const bool ok = load_file(n, &f, e);
    ls_file_unmap(&f);
    return ok;
}

bool ls_net_load_from(LsNet *n, const void *from, size_t bytes, LsError *e)
{
    const LsFile f = {"the checkpoint", from, bytes};
    return load_file(n, &f, e);
}

int64_t ls_net_updates(const LsNet *n) { return n->t.place.update; }
