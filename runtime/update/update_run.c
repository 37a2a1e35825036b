/* runtime/update/update_run.c -- see update_run.h. */
#include "runtime/update/update_run.h"

#include "runtime/base/clock.h"
#include "runtime/update/clip_check.h"
#include "runtime/update/micro_batch.h"
#include "runtime/update/update_loss.h"

#include <string.h>

/* Reads the loss of the oldest batch in flight. */
static bool take_loss(LsTraining *t, LsError *e)
{
    LsInFlight f = t->flight[0];
    LsLoss one;
    t->nflight--;
    memmove(t->flight, t->flight + 1, (size_t)t->nflight * sizeof f);
    if (!ls_engine_loss(&t->engine, f.table, f.slot, f.valid, &one, e))
        return false;
    if (t->members.n > 0)
        ls_member_state_add(&t->members, &t->engine);
    return ls_part_check(t, &f, one, e) && ls_part_loss(t, &f, one, e);
}

bool ls_update_land(LsTraining *t, LsError *e)
{
    while (t->nflight > 0)
        if (!take_loss(t, e))
            return false;
    return true;
}

static double norm(const LsTraining *t)
{
    return t->watch.norm != NULL ? t->watch.norm(t->watch.self) : -1;
}

/* Starts micro-batch k of an update, of as many as its batches or its drawn samples fill. On a
 * device the one before may still be in flight; its loss is read then. A part without samples is
 * left out. */
static bool run_part(LsTraining *t, int64_t k, int64_t *part, LsError *e)
{
    LsRun *run = &t->engine.run;
    LsHook hook[LS_PART_HOOKS];
    const LsBatch *b = ls_loader_next(&t->feed.loader, e);
    if (!b)
        return false;
    const bool own = ls_is_private(t->p), empty = !own && b->valid == 0;
    const int64_t number = b->number;
    /* its batch */
    const bool ends = own ? b->last : (k + 1) % ls_micro_batches(&t->p->division) == 0;
    if (!empty) {
        ls_engine_feed(&t->engine, &t->feed.loader, b);
        if (own && k == 0 && !ls_clip_check(t, b, e))
            return false;
        ls_part_run(t, b, k, own ? k : (*part)++);
        const LsPhaseTable *table = ls_part_table(t, run->apply);
        if (!ls_engine_run(&t->engine, table, hook, ls_part_hooks(t, table, run->apply, hook), e)
            || !ls_engine_fed(&t->engine, e))
            return false;
        t->flight[t->nflight++] =
            (LsInFlight){t->place.update + 1,
                         t->place.epoch + 1,
                         number,
                         table,
                         b->valid,
                         run->lr,
                         t->engine.slot,
                         run->apply,
                         run->apply ? norm(t) : -1};
    }
    ls_loader_release(&t->feed.loader);
    t->place.cursor += ends;
    if (empty)
        return true;
    int ahead = t->rules.check_values || ls_has_scaling(t->p) ? 0 : ls_engine_ahead(&t->engine);
    return t->nflight <= ahead || take_loss(t, e);
}

/* Counts the samples of an update that draws none, and its micro-batches that have some. */
static void count_samples(LsTraining *t, int64_t steps)
{
    t->under_way.samples = t->under_way.micro_batches = 0;
    for (int64_t k = 0; k < steps; k++) {
        const int64_t valid =
            ls_batch_valid(&t->feed.pass, t->place.cursor * ls_micro_batches(&t->p->division) + k);
        t->under_way.samples += valid;
        t->under_way.micro_batches += valid > 0;
    }
}

static bool run_parts(LsTraining *t, LsError *e)
{
    const bool own = ls_is_private(t->p);
    int64_t part = 0;
    t->engine.run.apply = false;
    for (int64_t k = 0; own ? !t->engine.run.apply
                            : k < ls_micro_batches_per_update(t->p);
         k++)
        if (!run_part(t, k, &part, e))
            return false;
    return true;
}

bool ls_update_run(LsTraining *t, LsError *e)
{
    const bool own = ls_is_private(t->p);
    const int64_t now = ls_now_ns();
    t->began_ns = t->nflight == 0 ? now : t->began_ns;
    t->engine.run.update = t->place.update - t->scale.skipped + 1;
    t->engine.run.lr = ls_rate_at(&t->rate, t->engine.run.update);
    for (int64_t k = 0; k < t->members.n; k++) {
        LsRate of = t->rate;
        of.lr = of.kind == LS_RATE_RISING ? of.lr : t->members.base[k];
        t->members.rates[k] = ls_rate_at(&of, t->engine.run.update);
    }
    if (!own)
        count_samples(t, ls_micro_batches_per_update(t->p));
    if (!(t->parts_by.run != NULL ? t->parts_by.run(t->parts_by.self, e) : run_parts(t, e)))
        return false;
    t->place.update++;
    return !own || ls_private_spend(&t->privacy, t->p, &t->place, e);
}
