/* runtime/ranks/rank_device.c -- see rank_device.h. */
#include "runtime/ranks/rank_device.h"

#include "runtime/engine/engine.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

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
    return x->view != NULL
           || ls_fail(e, LS_EXIT_FAIL, "no memory for a copy of the gradients, %lld bytes",
                      (long long)bytes);
}

/* Notes the ends of the buckets that piece k completes. Staged: they are copied to the host from
 * there on. */
static bool after_piece(void *self, uint32_t k)
{
    LsExchange *x = self;
    bool ok = true;
    for (; ok && x->noted < x->cut_end[k]; x->noted++) {
        const LsBucket *b = &x->bucket[x->noted];
        ok = x->on->point(x->d, x->noted)
             && (!x->staged
                 || x->on->beside(x->d, x->noted, x->sums + b->at, x->there + b->at, b->size));
    }
    return ok;
}

/* Cuts the last part behind the steps that complete buckets, but for its last step. */
static bool cut(LsExchange *x, LsError *e)
{
    const LsProgram *p = x->g->p;
    const uint32_t nstep = p->phase.last.nstep > 0 ? p->phase.last.nstep : p->phase.train.nstep;
    x->cut = calloc(2 * ((size_t)x->nbucket + 1), sizeof *x->cut);
    if (x->cut == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    x->cut_end = x->cut + x->nbucket + 1;
    for (uint32_t b = 0; b < x->nbucket && x->bucket[b].after < nstep - 1; b++) {
        if (x->ncut == 0 || x->cut[x->ncut - 1] < x->bucket[b].after)
            x->cut[x->ncut++] = x->bucket[b].after;
        x->cut_end[x->ncut - 1] = b + 1;
    }
    return ls_rank_device_ok(x, x->on->points(x->d, x->nbucket), e)
           && ls_engine_cut(x->g, (LsCuts){x->cut, x->ncut, after_piece, x}, e);
}

bool ls_rank_device_open(LsExchange *x, LsMemory *m, LsError *e)
{
    const int64_t bytes = x->r->sum_bytes;
    x->d = m->device;
    x->on = x->g->p->accelerator.ranks;
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
    return x->size == 1 || (ls_rank_device_ok(x, x->arrived != NULL, e) && cut(x, e));
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
        return b > x->noted || ls_rank_device_ok(x, x->on->settle(x->d), e);
    if (b >= x->noted)
        return ls_rank_device_ok(x,
                                 x->on->fetch(x->d, x->sums + of->at, x->there + of->at, of->size)
                                     && x->on->settle(x->d),
                                 e);
    return !x->staged || ls_rank_device_ok(x, x->on->beside_done(x->d, b), e);
}

bool ls_rank_device_launch(LsExchange *x, uint32_t b, LsError *e)
{
    return x->staged || x->size == 1 || x->on->launch(x->d, b, x->bulk, e);
}

/* The sum of n parts from the first on, as in slice_sum.c. Sums of subtrees take the place of their
 * first part. */
static bool add_tree(LsExchange *x, const char *const part[], int n, int64_t bytes, char *to)
{
    int left = 1;
    if (n == 1)
        return part[0] == to || x->on->move(x->d, to, part[0], bytes);
    while (2 * left < n)
        left *= 2;
    char *const a = (char *)(uintptr_t)part[0], *const b = (char *)(uintptr_t)part[left];
    return add_tree(x, part, left, bytes, a) && add_tree(x, part + left, n - left, bytes, b)
           && x->on->add(x->d, to, a, b, bytes);
}

bool ls_rank_device_add(LsExchange *x, const char *const part[], int n, int64_t bytes, char *to,
                        LsError *e)
{
    return ls_rank_device_ok(x, add_tree(x, part, n, bytes, to), e);
}

bool ls_rank_device_settle(LsExchange *x, LsError *e)
{
    return ls_rank_device_ok(x, x->on->settle(x->d), e);
}

bool ls_rank_device_copy(LsExchange *x, void *there, void *here, int64_t bytes, bool to_device,
                         LsError *e)
{
    return ls_rank_device_ok(x,
                             to_device ? x->on->store(x->d, there, here, bytes)
                                       : x->on->fetch(x->d, here, there, bytes),
                             e);
}
