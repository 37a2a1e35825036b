/* runtime/ranks/rank_device.c -- see rank_device.h. */
#include "runtime/ranks/rank_device.h"

#include "runtime/engine/engine.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

/* Passes on the device's failure. */
static bool told(const LsExchange *x, bool ok, LsError *e) { return ok || ls_device_ok(x->d, e); }

/* ---- opening ---- */

/* What the host has of the sums, for messages or for views alone. */
static bool take_view(LsExchange *x, LsError *e)
{
    const int64_t bytes = x->r->sum_bytes;
    if (x->window != NULL) {
        x->view = x->window + x->rank * bytes;
        return true;
    }
    x->view = x->own_view = aligned_alloc(PAGE, (size_t)(bytes / PAGE + 1) * PAGE);
    return x->view != NULL || ls_fail(e, LS_EXIT_FAIL, "no memory for a copy of the gradients, %lld bytes", (long long)bytes);
}

/* Notes the ends of the buckets that piece k completes. Staged: they are copied to the host from there on. */
static bool after_piece(void *self, uint32_t k)
{
    LsExchange *x = self;
    bool ok = true;
    for (; ok && x->noted < x->cut_end[k]; x->noted++) {
        const LsBucket *b = &x->bucket[x->noted];
        ok = x->on->point(x->d, x->noted)
            && (!x->staged || x->on->beside(x->d, x->noted, x->sums + b->at, x->there + b->at, b->size));
    }
    return ok;
}

/* Cuts the last part behind the steps that complete buckets, but for its last step. */
static bool cut(LsExchange *x, LsError *e)
{
    const LsProgram *p = x->g->p;
    const uint32_t nstep = p->last.nstep > 0 ? p->last.nstep : p->train.nstep;
    x->cut = calloc(2 * ((size_t)x->nbucket + 1), sizeof *x->cut);
    if (x->cut == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    x->cut_end = x->cut + x->nbucket + 1;
    for (uint32_t b = 0; b < x->nbucket && x->bucket[b].after < nstep - 1; b++) {
        if (x->ncut == 0 || x->cut[x->ncut - 1] < x->bucket[b].after)
            x->cut[x->ncut++] = x->bucket[b].after;
        x->cut_end[x->ncut - 1] = b + 1;
    }
    return told(x, x->on->points(x->d, x->nbucket), e) && ls_engine_cut(x->g, (LsCuts){x->cut, x->ncut, after_piece, x}, e);
}

bool ls_rank_device_open(LsExchange *x, LsMemory *m, LsError *e)
{
    const int64_t bytes = x->r->sum_bytes;
    x->d = m->device;
    x->on = x->g->p->device_ranks;
    x->there = x->sums;
    x->staged = x->size > 1 && x->bulk == x->comm;
    x->set = aligned_alloc(_Alignof(LsRunSet), (x->r->nsum + 1) * sizeof *x->set);
    if (x->set == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    memset(x->set, 0, (x->r->nsum + 1) * sizeof *x->set);
    if (!take_view(x, e))
        return false;
    x->d->kind->pin(x->d, x->set, (int64_t)((x->r->nsum + 1) * sizeof *x->set));
    if (x->staged) {
        x->sums = x->view;
        x->pinned = x->window != NULL ? x->window : x->view;
        x->d->kind->pin(x->d, x->pinned, x->window != NULL ? x->size * bytes : bytes);
    } else if (x->size > 1) {
        x->arrived = x->on->take(x->d, bytes / x->size * (x->size - 1));
    }
    return x->size == 1 || (told(x, x->arrived != NULL, e) && cut(x, e));
}

void ls_rank_device_close(LsExchange *x)
{
    if (x->d == NULL)
        return;
    if (x->pinned != NULL)
        x->d->kind->unpin(x->d, x->pinned);
    if (x->set != NULL && x->view != NULL)
        x->d->kind->unpin(x->d, x->set);
    free(x->set);
    free(x->cut);
    free(x->own_view);
}

/* ---- sums ---- */

bool ls_rank_device_ready(LsExchange *x, uint32_t b, LsError *e)
{
    const LsBucket *of = &x->bucket[b];
    if (x->size == 1)
        return true;
    if (b >= x->noted && !x->staged)
        return b > x->noted || told(x, x->on->settle(x->d), e);
    if (b >= x->noted)
        return told(x, x->on->fetch(x->d, x->sums + of->at, x->there + of->at, of->size) && x->on->settle(x->d), e);
    return !x->staged || told(x, x->on->beside_done(x->d, b), e);
}

bool ls_rank_device_launch(LsExchange *x, uint32_t b, LsError *e)
{
    return x->staged || x->size == 1 || x->on->launch(x->d, b, x->bulk, e);
}

/* The sum of n parts from the first on, as in slice_sum.c. Sums of subtrees take the place of their first part. */
static bool add_tree(LsExchange *x, const char *const part[], int n, int64_t bytes, char *to)
{
    int left = 1;
    if (n == 1)
        return part[0] == to || x->on->move(x->d, to, part[0], bytes);
    while (2 * left < n)
        left *= 2;
    char *const a = (char *)(uintptr_t)part[0], *const b = (char *)(uintptr_t)part[left];
    return add_tree(x, part, left, bytes, a) && add_tree(x, part + left, n - left, bytes, b) && x->on->add(x->d, to, a, b, bytes);
}

bool ls_rank_device_add(LsExchange *x, const char *const part[], int n, int64_t bytes, char *to, LsError *e)
{
    return told(x, add_tree(x, part, n, bytes, to), e);
}

bool ls_rank_device_settle(LsExchange *x, LsError *e) { return told(x, x->on->settle(x->d), e); }

bool ls_rank_device_copy(LsExchange *x, void *there, void *here, int64_t bytes, bool to_device, LsError *e)
{
    return told(x, to_device ? x->on->store(x->d, there, here, bytes) : x->on->fetch(x->d, here, there, bytes), e);
}

/* Staged: brings what was gathered to the device. With a window every slice is still where its owner has it. */
static bool bring(LsExchange *x, const LsBucket *b)
{
    const int64_t slice = ls_slice_bytes(x, b);
    if (!x->staged)
        return true;
    if (x->window == NULL)
        return x->on->store(x->d, x->there + b->at, x->sums + b->at, b->size);
    for (int q = 0; q < x->size; q++)
        if (!x->on->store(x->d, x->there + b->at + q * slice, x->window + q * x->r->sum_bytes + b->at + q * slice, slice))
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

/* Updates this rank's slice of parameter k, whose gradient is on the device, and copies it to the sums. */
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
    if (!run_step(x, &x->g->p->update.step[s->step], arg))
        return false;
    return x->size == 1 || (x->staged ? x->on->fetch(x->d, x->sums + r.from, arg[0], r.to - r.from)
                                      : x->on->move(x->d, x->sums + r.from, arg[0], r.to - r.from));
}

/* Adds up this rank's slice of a bucket, on the device or for it, and updates what it has of the parameters. */
static bool update_bucket(LsExchange *x, uint32_t b, LsError *e)
{
    const LsBucket *of = &x->bucket[b];
    const int64_t at = of->at + x->rank * ls_slice_bytes(x, of);
    if (!ls_bucket_reduce(x, b, e))
        return false;
    bool ok = !x->staged || x->on->store(x->d, x->there + at, x->sums + at, ls_slice_bytes(x, of));
    for (uint32_t k = of->first; ok && k < of->end; k++)
        ok = update_slice(x, of, k);
    if (!told(x, ok, e))
        return false;
    return !x->staged || (ls_rank_device_settle(x, e) && ls_bucket_all_gather(x, b, e));
}

/* Takes the parameters as all ranks have updated them. */
static bool take_parameters(LsExchange *x, const LsBucket *b)
{
    bool ok = bring(x, b);
    for (uint32_t k = b->first; ok && k < b->end; k++) {
        const LsRankSum *s = &x->r->sum[k];
        ok = x->on->move(x->d, ls_memory_at(x->g->m, s->param), x->there + s->at, s->count * x->g->p->real_bytes);
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
        if (!x->bucket[b].whole && (!ls_bucket_all_gathered(x, b, e) || !told(x, take_parameters(x, &x->bucket[b]), e)))
            return false;
    return true;
}

static bool update_slices(LsExchange *x, LsError *e)
{
    const LsProgram *p = x->g->p;
    bool ok = x->d->kind->begin(x->d, x->g->slot, &x->g->run) && set_numbers(x);
    x->d->update = x->g->run.update;
    for (uint32_t k = 0; ok && k < p->update.nstep; k++)
        if (!x->slice_step[k])
            ok = run_step(x, &p->update.step[k], x->g->arg + p->update.step[k].arg);
    if (!told(x, ok, e) || !update_buckets(x, e))
        return false;
    x->on->use(x->d, -1);
    return told(x, x->d->kind->end(x->d, x->g->slot, NULL, NULL), e);
}

bool ls_rank_device_update(LsExchange *x, LsError *e)
{
    for (uint32_t b = 0; b < x->nbucket; b++)
        if (x->bucket[b].whole && !told(x, bring(x, &x->bucket[b]), e))
            return false;
    if (x->r->sliced ? !update_slices(x, e) : !ls_engine_run(x->g, &x->g->p->update, NULL, 0, e))
        return false;
    return x->window == NULL || ls_rank_device_settle(x, e);    /* the others' sums were read */
}
