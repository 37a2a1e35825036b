/* runtime/ranks/device_update.c -- see device_update.h. */
#include "runtime/ranks/device_update.h"

#include "runtime/engine/engine.h"
#include "runtime/ranks/buckets.h"
#include "runtime/ranks/rank_device.h"

/* Staged: brings what was gathered to the device. With a window every slice is still where its
 * owner has it. */
static bool bring(LsExchange *x, const LsBucket *b)
{
    const int64_t slice = ls_slice_bytes(x, b);
    if (!x->staged)
        return true;
    if (x->window == NULL)
        return x->on->store(x->d, x->there + b->at, x->sums + b->at, b->size);
    for (int q = 0; q < x->size; q++)
        if (!x->on->store(x->d, x->there + b->at + q * slice,
                          x->window + q * x->r->sum_bytes + b->at + q * slice, slice))
            return false;
    return true;
}

/* ---- updates of slices ---- */

/* Gives the device the numbers of all slices. */
static bool set_numbers(LsExchange *x)
{
    for (uint32_t b = 0; b < x->nbucket; b++)
        for (uint32_t k = x->bucket[b].first; k < x->bucket[b].end; k++) {
            const LsRange r = ls_slice_of_sum(x, &x->bucket[b], &x->r->sum[k], x->rank);
            x->set[k].of = x->g->run;
            x->set[k].of.count = r.from < r.to ? (r.to - r.from) / x->g->p->real_bytes : 0;
        }
    return x->on->numbers(x->d, x->set, x->r->nsum);
}

static bool run_step(LsExchange *x, const LsStep *s, void *const arg[])
{
    x->d->at = s;
    s->run(&x->g->run, arg);
    x->d->at = NULL;
    return x->d->error.code == LS_EXIT_DONE;
}

/* Updates this rank's slice of parameter k, whose gradient is on the device, and copies it to the
 * sums. */
static bool update_slice(LsExchange *x, const LsBucket *b, uint32_t k)
{
    void *arg[LS_SLICE_ARGUMENTS];
    const LsRankSum *s = &x->r->sum[k];
    const LsRange r = ls_slice_of_sum(x, b, s, x->rank);
    if (r.from >= r.to)
        return true;
    ls_slice_arguments(x, b, s, r.from, arg);
    arg[1] = x->there + r.from;
    x->g->run.count = x->set[k].of.count;
    x->on->use(x->d, k);
    if (!run_step(x, &x->g->p->phase.update.step[s->step], arg))
        return false;
    return x->size == 1 || (x->staged ? x->on->fetch(x->d, x->sums + r.from, arg[0], r.to - r.from)
                                      : x->on->move(x->d, x->sums + r.from, arg[0], r.to - r.from));
}

/* Adds up this rank's slice of a bucket, on the device or for it, and updates what it has of the
 * parameters. */
static bool update_bucket(LsExchange *x, uint32_t b, LsError *e)
{
    const LsBucket *of = &x->bucket[b];
    const int64_t at = of->at + x->rank * ls_slice_bytes(x, of);
    if (!ls_bucket_reduce(x, b, e))
        return false;
    bool ok = !x->staged || x->on->store(x->d, x->there + at, x->sums + at, ls_slice_bytes(x, of));
    for (uint32_t k = of->first; ok && k < of->end; k++)
        ok = update_slice(x, of, k);
    if (!ls_rank_device_ok(x, ok, e))
        return false;
    return !x->staged || (ls_rank_device_settle(x, e) && ls_bucket_all_gather(x, b, e));
}

/* Takes the parameters as all ranks have updated them. */
static bool take_parameters(LsExchange *x, const LsBucket *b)
{
    bool ok = bring(x, b);
    for (uint32_t k = b->first; ok && k < b->end; k++) {
        const LsRankSum *s = &x->r->sum[k];
        ok = x->on->move(x->d, ls_memory_at(x->g->m, s->param), x->there + s->at,
                         s->count * x->g->p->real_bytes);
    }
    return ok;
}

/* Every bucket with slices of updates. */
static bool update_buckets(LsExchange *x, LsError *e)
{
    for (uint32_t b = 0; b < x->nbucket; b++)
        if (!x->bucket[b].whole && !update_bucket(x, b, e))
            return false;
    if (x->size == 1)
        return true;
    if (!x->staged && !ls_rank_device_settle(x, e))
        return false;
    for (uint32_t b = 0; b < x->nbucket && !x->staged; b++)
        if (!x->bucket[b].whole && !ls_bucket_all_gather(x, b, e))
            return false;
    for (uint32_t b = 0; b < x->nbucket; b++)
        if (!x->bucket[b].whole
            && (!ls_bucket_all_gathered(x, b, e)
                || !ls_rank_device_ok(x, take_parameters(x, &x->bucket[b]), e)))
            return false;
    return true;
}

static bool update_slices(LsExchange *x, LsError *e)
{
    const LsProgram *p = x->g->p;
    bool ok = x->d->kind->begin(x->d, x->g->slot, &x->g->run) && set_numbers(x);
    x->d->update = x->g->run.update;
    for (uint32_t k = 0; ok && k < p->phase.update.nstep; k++)
        if (!x->slice_step[k])
            ok = run_step(x, &p->phase.update.step[k], x->g->arg + p->phase.update.step[k].arg);
    if (!ls_rank_device_ok(x, ok, e) || !update_buckets(x, e))
        return false;
    x->on->use(x->d, -1);
    return ls_rank_device_ok(x, x->d->kind->end(x->d, x->g->slot, NULL, NULL), e);
}

bool ls_rank_device_update(LsExchange *x, LsError *e)
{
    for (uint32_t b = 0; b < x->nbucket; b++)
        if (x->bucket[b].whole && !ls_rank_device_ok(x, bring(x, &x->bucket[b]), e))
            return false;
    if (x->r->sliced ? !update_slices(x, e)
                     : !ls_engine_run(x->g, &x->g->p->phase.update, NULL, 0, e))
        return false;
    return x->window == NULL || ls_rank_device_settle(x, e);    /* the others' sums were read */
}
