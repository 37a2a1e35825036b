/* runtime/ranks/rank_exchange.c -- see rank_exchange.h. */
#include "runtime/ranks/rank_exchange.h"

#include "runtime/ranks/buckets.h"
#include "runtime/ranks/device_update.h"
#include "runtime/ranks/rank_device.h"

#include <stdlib.h>
#include <string.h>

/* ---- sums on their way ---- */

static void after_step(void *self, uint32_t step)
{
    LsExchange *x = self;
    while (x->begun < x->nbucket && x->bucket[x->begun].after <= step
           && x->error.code == LS_EXIT_DONE) {
        ls_bucket_begin(x, x->begun, &x->error);
        x->begun++;
    }
}

LsHook ls_exchange_hook(LsExchange *x) { return (LsHook){.after = after_step, .self = x}; }

bool ls_exchange_begin(LsExchange *x, LsError *e)
{
    while (x->begun < x->noted)
        if (!ls_bucket_begin(x, x->begun++, e))
            return false;
    return true;
}

void ls_exchange_start(LsExchange *x, int64_t parts)
{
    x->parts = parts;
    x->begun = x->noted = 0;
}

/* ---- slices ---- */

static void run_step(LsExchange *x, uint32_t k)
{
    const LsStep *s = &x->g->p->phase.update.step[k];
    s->run(&x->g->run, x->g->arg + s->arg);
}

/* Updates a range of a parameter's elements, with the gradient in x->chunk. */
static void update_range(LsExchange *x, const LsBucket *b, const LsRankSum *s, LsRange r)
{
    const LsProgram *p = x->g->p;
    const LsStep *step = &p->phase.update.step[s->step];
    void *arg[LS_SLICE_ARGUMENTS];
    ls_slice_arguments(x, b, s, r.from, arg);
    arg[1] = x->chunk;
    x->g->run.count = (r.to - r.from) / p->real_bytes;
    step->run(&x->g->run, arg);
    if (x->size > 1)
        memcpy(x->sums + r.from, arg[0], (size_t)(r.to - r.from));
}

/* Adds up and updates this rank's part of a parameter, in chunks that stay in the caches. */
static void update_slice(LsExchange *x, const LsBucket *b, const LsRankSum *s,
                         const char *const part[])
{
    const LsRange r = ls_slice_of_sum(x, b, s, x->rank);
    const int64_t slice = b->at + x->rank * ls_slice_bytes(x, b);
    for (int64_t at = r.from; at < r.to; at += LS_RANK_CHUNK) {
        const LsRange of = {at, r.to - at < LS_RANK_CHUNK ? r.to : at + LS_RANK_CHUNK};
        ls_slice_sum(&x->g->run, part, ls_contributors(x), at - slice, of.to - of.from,
                     x->g->p->real_bytes, x->chunk);
        update_range(x, b, s, of);
    }
}

/* Takes the parameters that other ranks have updated. */
static void spread(LsExchange *x, const LsBucket *b)
{
    for (uint32_t k = b->first; k < b->end; k++)
        for (int q = 0; q < x->size; q++) {
            const LsRankSum *s = &x->r->sum[k];
            const LsRange r = ls_slice_of_sum(x, b, s, q);
            const char *from = x->window != NULL ? x->window + q * x->r->sum_bytes : x->sums;
            if (q != x->rank && r.from < r.to)
                memcpy((char *)ls_memory_at(x->g->m, s->param) + (r.from - s->at), from + r.from,
                       (size_t)(r.to - r.from));
        }
}

static bool update_slices(LsExchange *x, LsError *e)
{
    const char *part[LS_SLICE_RANKS];
    for (uint32_t k = 0; k < x->g->p->phase.update.nstep; k++)
        if (!x->slice_step[k])
            run_step(x, k);
    for (uint32_t b = 0; b < x->nbucket; b++) {
        if (x->bucket[b].whole)
            continue;
        if (!ls_bucket_take(x, b, part, e))
            return false;
        for (uint32_t k = x->bucket[b].first; k < x->bucket[b].end; k++)
            update_slice(x, &x->bucket[b], &x->r->sum[k], part);
        if (!ls_bucket_all_gather(x, b, e))
            return false;
    }
    for (uint32_t b = 0; b < x->nbucket; b++) {
        if (x->bucket[b].whole)
            continue;
        if (!ls_bucket_all_gathered(x, b, e))
            return false;
        spread(x, &x->bucket[b]);
    }
    return true;
}

/* Takes the sums of a bucket's slices that other ranks have in the window. */
static void copy_sums(LsExchange *x, const LsBucket *b)
{
    for (int q = 0; q < x->size; q++)
        if (q != x->rank)
            memcpy(ls_bucket_slice(x, b, q), ls_bucket_seen(x, b, q, q),
                   (size_t)ls_slice_bytes(x, b));
}

/* ---- packets ---- */

/* Copies the rows of a rank's parts out of its packet, or the own ones into it. */
static bool copy_rows(LsExchange *x, int rank, bool out, LsError *e)
{
    const int64_t first = rank * x->block, left = x->parts - first,
                  n = left < x->block ? left : x->block;
    char *at = ls_packet_rest(&x->packets, rank);
    for (uint32_t t = 0; t < x->r->nrows; t++) {
        const int64_t bytes = x->r->rows[t].bytes;
        char *rows = (char *)ls_memory_at(x->g->m, x->r->rows[t].at) + first * bytes;
        if (n > 0 && x->d == NULL)
            memcpy(out ? rows : at, out ? at : rows, (size_t)(n * bytes));
        else if (n > 0 && !ls_rank_device_copy(x, rows, at, n * bytes, out, e))
            return false;
        at += x->block * bytes;
    }
    return x->d == NULL || out || ls_rank_device_settle(x, e);
}

bool ls_exchange_agree(LsExchange *x, uint64_t place, LsError *e)
{
    return ls_packets_swap(&x->packets, place, 0, e);
}

static bool swap_packets(LsExchange *x, uint64_t place, int stop, LsError *e)
{
    if (!copy_rows(x, x->rank, false, e) || !ls_packets_swap(&x->packets, place, stop, e))
        return false;
    for (int q = 0; q < x->size; q++)
        if (q != x->rank && !copy_rows(x, q, true, e))
            return false;
    return true;
}

void ls_exchange_note(LsExchange *x, int64_t j, LsLoss loss)
{
    ls_packet_losses(&x->packets, x->rank)[j] = loss;
}

LsLoss ls_exchange_loss(const LsExchange *x, int64_t k)
{
    return ls_packet_losses(&x->packets, (int)(k / x->block))[k % x->block];
}

int ls_exchange_stop(const LsExchange *x) { return ls_packets_stop(&x->packets); }

/* ---- the end of an update ---- */

static bool gather_whole(LsExchange *x, LsError *e)
{
    const bool later = ls_adds_on_device(x);   /* no slice leaves the device before all sums are
                                                * there */
    for (uint32_t b = 0; b < x->nbucket; b++)
        if (x->bucket[b].whole
            && (!ls_bucket_reduce(x, b, e) || (!later && !ls_bucket_all_gather(x, b, e))))
            return false;
    if (later && x->size > 1 && !ls_rank_device_settle(x, e))
        return false;
    for (uint32_t b = 0; b < x->nbucket && later; b++)
        if (x->bucket[b].whole && !ls_bucket_all_gather(x, b, e))
            return false;
    for (uint32_t b = 0; b < x->nbucket; b++) {
        if (!x->bucket[b].whole)
            continue;
        if (!ls_bucket_all_gathered(x, b, e))
            return false;
        if (x->window != NULL && x->d == NULL)
            copy_sums(x, &x->bucket[b]);
    }
    return true;
}

bool ls_exchange_finish(LsExchange *x, uint64_t place, int stop, LsError *e)
{
    LsRun *run = &x->g->run;
    while (x->begun < x->nbucket && x->error.code == LS_EXIT_DONE)
        ls_bucket_begin(x, x->begun++, &x->error);
    if (x->error.code != LS_EXIT_DONE)
        return ls_fail(e, x->error.code, "%s", x->error.text);
    if (!swap_packets(x, place, stop, e) || !gather_whole(x, e))
        return false;
    run->apply = true;
    run->parts = x->parts;
    if (x->d != NULL ? !ls_rank_device_update(x, e) : x->r->sliced && !update_slices(x, e))
        return false;
    for (uint32_t k = 0; k < x->g->p->phase.update.nstep && !x->r->sliced && x->d == NULL; k++)
        run_step(x, k);
    /* the others may still read this rank's sums */
    return x->window == NULL || x->comm->engine->barrier(x->comm, e);
}

/* ---- opening ---- */

uint32_t ls_buckets_make(const LsRanks *r, LsBucketing how, LsBucket *to)
{
    const int64_t least = how.bytes > 0 ? how.bytes : LS_BUCKET;
    int64_t sliced = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < r->nsum; k++) {
        const LsRankSum *s = &r->sum[k];
        const bool whole = !r->sliced || s->param.space == LS_AT_NONE;
        if (n == 0 || to[n - 1].size >= least || to[n - 1].whole != whole)
            to[n++] = (LsBucket){.at = s->at, .sliced = sliced, .first = k, .whole = whole};
        sliced += whole ? 0 : s->bytes;
        to[n - 1].size += s->bytes;
        to[n - 1].end = k + 1;
        to[n - 1].after = how.late ? LS_NO_STEP : s->after;
    }
    return n;
}

/* The steps of the phase `update` that run slice by slice. */
static void find_slice_steps(LsExchange *x)
{
    for (uint32_t k = 0; k < x->nbucket; k++)
        for (uint32_t s = x->bucket[k].first; s < x->bucket[k].end && !x->bucket[k].whole; s++)
            x->slice_step[x->r->sum[s].step] = true;
}

static int64_t row_bytes(const LsRanks *r)
{
    int64_t bytes = 0;
    for (uint32_t t = 0; t < r->nrows; t++)
        bytes += r->rows[t].bytes;
    return bytes;
}

bool ls_exchange_open(LsExchange *x, LsEngine *g, LsMemory *m, LsComm *comm, LsComm *bulk,
                      char *window, LsBucketing how, LsError *e)
{
    const LsRanks *r = g->p->ranks;
    const int n = comm != NULL ? comm->size : 1;
    *x = (LsExchange){.r = r, .g = g, .comm = comm, .bulk = bulk != NULL ? bulk : comm,
                      .rank = comm != NULL ? comm->rank : 0, .size = n, .block = r->parts / n,
                      .window = window, .sums = ls_memory_at(m, r->sums), .slices = m->slice};
    if (n > LS_SLICE_RANKS)
        return ls_fail(e, LS_EXIT_USAGE, "at most %d ranks", (int)LS_SLICE_RANKS);
    x->bucket = calloc(r->nsum + 1, sizeof *x->bucket);
    x->sent = calloc(2 * (size_t)n * (r->nsum + 1), sizeof *x->sent);
    x->view = x->sums;
    x->arrived = x->own_arrived =
        calloc(1, window != NULL ? 1 : (size_t)(r->sum_bytes / n * (n - 1)) + 1);
    x->chunk = aligned_alloc(64, LS_RANK_CHUNK);
    x->slice_step = calloc(g->p->phase.update.nstep + 1, sizeof *x->slice_step);
    if (!x->bucket || !x->sent || !x->arrived || !x->chunk || !x->slice_step)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for the exchange with other ranks");
    x->got = x->sent + (size_t)n * (r->nsum + 1);
    x->nbucket = ls_buckets_make(r, how, x->bucket);
    find_slice_steps(x);
    if (!ls_packets_open(&x->packets, comm, LS_TAG_PACKET, x->block,
                         ls_rank_packet_bytes(x->block, row_bytes(r)), e)
        || !ls_packets_open(&x->replicas, comm, LS_TAG_REPLICAS, 0, LS_REPLICAS_PACKET, e)
        || (m->device != NULL && !ls_rank_device_open(x, m, e)))
        return false;
    m->slices = (LsSlices){ls_exchange_view, ls_exchange_store, x, x->view, &x->error};
    return true;
}

void ls_exchange_close(LsExchange *x)
{
    ls_rank_device_close(x);
    free(x->bucket);
    free(x->sent);
    ls_packets_close(&x->packets);
    ls_packets_close(&x->replicas);
    free(x->own_arrived);
    free(x->chunk);
    free(x->slice_step);
    *x = (LsExchange){0};
}
