/* runtime/ranks/collect_slices.c -- state that ranks have in slices: rank 0 reads it whole, for
 * checkpoints; and every rank takes its slices out of a checkpoint. See rank_exchange.h. */
#include "runtime/ranks/rank_exchange.h"

#include <string.h>

static const LsBucket *bucket_at(const LsExchange *x, int64_t at)
{
    uint32_t b = 0;
    while (at >= x->bucket[b].at + x->bucket[b].size)
        b++;
    return &x->bucket[b];
}

static const LsRankSum *sum_at(const LsExchange *x, int64_t at)
{
    const LsBucket *b = bucket_at(x, at);
    uint32_t k = b->first;
    while (x->r->sum[k].at != at)
        k++;
    return &x->r->sum[k];
}

/* The part of sliced state that this rank has, between its own place and the sums. */
static LsRange copy_own(LsExchange *x, int64_t offset, bool in)
{
    const LsRankSum *s = sum_at(x, offset % x->r->sum_bytes);
    const LsBucket *b = bucket_at(x, s->at);
    const LsRange r = ls_slice_of_sum(x, b, s, x->rank);
    if (r.from < r.to) {
        char *own = ls_slice_state(x, offset / x->r->sum_bytes, ls_slice_place(x, b, r.from)),
             *whole = x->view + r.from;
        if (x->d == NULL)
            memcpy(in ? own : whole, in ? whole : own, (size_t)(r.to - r.from));
        else if (in)
            x->d->kind->write(x->d, own, whole, r.to - r.from);
        else
            x->d->kind->read(x->d, whole, own, r.to - r.from);
    }
    return r;
}

static bool ask_all(LsExchange *x, int64_t offset, LsError *e)
{
    for (int q = 1; q < x->size; q++)
        if (!ls_comm_send_now(x->comm, q, LS_TAG_ASK, &offset, sizeof offset, e))
            return false;
    return true;
}

/* Rank 0: brings a tensor's slices together, in x->view. */
void ls_exchange_view(void *self, int64_t offset)
{
    LsExchange *x = self;
    if (!x->collects || x->error.code != LS_EXIT_DONE || !ask_all(x, offset, &x->error))
        return;
    copy_own(x, offset, false);
    const LsRankSum *s = sum_at(x, offset % x->r->sum_bytes);
    for (int q = 1; q < x->size; q++) {
        const LsRange r = ls_slice_of_sum(x, bucket_at(x, s->at), s, q);
        if (r.from < r.to
            && !ls_comm_receive_now(x->comm, q, LS_TAG_PIECE, x->view + r.from, r.to - r.from,
                                    &x->error))
            return;
    }
}

void ls_exchange_store(void *self, int64_t offset) { copy_own(self, offset, true); }

void ls_exchange_collect(LsExchange *x) { x->collects = true; }

bool ls_exchange_release(LsExchange *x, LsError *e)
{
    x->collects = false;
    if (x->error.code != LS_EXIT_DONE)
        return ls_fail(e, x->error.code, "%s", x->error.text);
    return ask_all(x, -1, e);
}

bool ls_exchange_serve(LsExchange *x, LsError *e)
{
    for (int64_t offset = 0;;) {
        if (!ls_comm_receive_now(x->comm, 0, LS_TAG_ASK, &offset, sizeof offset, e))
            return false;
        if (offset < 0)
            return true;
        const LsRange r = copy_own(x, offset, false);
        if (r.from < r.to
            && !ls_comm_send_now(x->comm, 0, LS_TAG_PIECE, x->view + r.from, r.to - r.from, e))
            return false;
    }
}
