/* runtime/ranks/buckets.c -- see buckets.h. */
#include "runtime/ranks/buckets.h"

#include "runtime/ranks/rank_device.h"

#include <string.h>

int ls_contributors(const LsExchange *x) { return (int)((x->parts + x->block - 1) / x->block); }

static LsTransfer *transfer(const LsExchange *x, LsTransfer *of, uint32_t b, int rank)
{
    return of + b * x->size + rank;
}

/* Where a slice of rank `from` arrives. */
static char *arrival(const LsExchange *x, const LsBucket *b, int from)
{
    const int n = x->size, slot = from < x->rank ? from : from - 1;
    return x->arrived + b->at / n * (n - 1) + slot * ls_slice_bytes(x, b);
}

char *ls_bucket_slice(const LsExchange *x, const LsBucket *b, int rank)
{
    return x->sums + b->at + rank * ls_slice_bytes(x, b);
}

const char *ls_bucket_seen(const LsExchange *x, const LsBucket *b, int of, int k)
{
    return x->window + of * x->r->sum_bytes + b->at + k * ls_slice_bytes(x, b);
}

/* Bytes of a message that brings a slice. */
static int64_t sent_bytes(const LsExchange *x, const LsBucket *b)
{
    return x->window != NULL ? 0 : ls_slice_bytes(x, b);
}

static bool send(LsExchange *x, int rank, uint32_t b, const char *slice, LsError *e)
{
    return x->bulk->engine->send(x->bulk, rank, LS_TAG_BUCKETS + b, slice,
                                 sent_bytes(x, &x->bucket[b]), transfer(x, x->sent, b, rank), e);
}

static bool take(LsExchange *x, int rank, uint32_t b, char *slice, LsError *e)
{
    return x->bulk->engine->receive(x->bulk, rank, LS_TAG_BUCKETS + b, slice,
                                    sent_bytes(x, &x->bucket[b]), transfer(x, x->got, b, rank), e);
}

/* Waits for the transfers with the ranks below n. */
static bool wait_all(LsExchange *x, LsTransfer *of, int n, LsError *e)
{
    for (int k = 0; k < n; k++)
        if (k != x->rank && !x->bulk->engine->wait(x->bulk, &of[k], e))
            return false;
    return true;
}

bool ls_bucket_begin(LsExchange *x, uint32_t b, LsError *e)
{
    const LsBucket *of = &x->bucket[b];
    const int n = ls_contributors(x), me = x->rank;
    if (x->d != NULL && me < n && !ls_rank_device_ready(x, b, e))
        return false;
    for (int q = 0; q < x->size; q++)
        if (q != me
            && ((q < n && !take(x, q, b, arrival(x, of, q), e))
                || (me < n && !send(x, q, b, ls_bucket_slice(x, of, q), e))))
            return false;
    return x->d == NULL || ls_rank_device_launch(x, b, e);
}

bool ls_bucket_take(LsExchange *x, uint32_t b, const char *part[LS_SLICE_RANKS], LsError *e)
{
    const LsBucket *of = &x->bucket[b];
    const int n = ls_contributors(x), me = x->rank;
    for (int q = 0; q < n; q++)
        part[q] = q == me             ? ls_bucket_slice(x, of, q)
                  : x->window != NULL ? ls_bucket_seen(x, of, q, me)
                                      : arrival(x, of, q);
    return wait_all(x, transfer(x, x->got, b, 0), n, e)
        && (me >= n || wait_all(x, transfer(x, x->sent, b, 0), x->size, e));
}

bool ls_adds_on_device(const LsExchange *x) { return x->d != NULL && !x->staged; }

bool ls_bucket_reduce(LsExchange *x, uint32_t b, LsError *e)
{
    const LsBucket *of = &x->bucket[b];
    const char *part[LS_SLICE_RANKS];
    if (!ls_bucket_take(x, b, part, e))
        return false;
    if (ls_adds_on_device(x))
        return ls_rank_device_add(x, part, ls_contributors(x), ls_slice_bytes(x, of),
                                  ls_bucket_slice(x, of, x->rank), e);
    ls_slice_sum(&x->g->run, part, ls_contributors(x), 0, ls_slice_bytes(x, of),
                 x->g->p->real_bytes, ls_bucket_slice(x, of, x->rank));
    return true;
}

bool ls_bucket_all_gather(LsExchange *x, uint32_t b, LsError *e)
{
    const LsBucket *of = &x->bucket[b];
    for (int q = 0; q < x->size; q++)
        if (q != x->rank
            && (!take(x, q, b, ls_bucket_slice(x, of, q), e)
                || !send(x, q, b, ls_bucket_slice(x, of, x->rank), e)))
            return false;
    return x->d == NULL || ls_rank_device_launch(x, b, e);
}

bool ls_bucket_all_gathered(LsExchange *x, uint32_t b, LsError *e)
{
    return wait_all(x, transfer(x, x->got, b, 0), x->size, e)
           && wait_all(x, transfer(x, x->sent, b, 0), x->size, e);
}

void ls_slice_arguments(const LsExchange *x, const LsBucket *b, const LsRankSum *s, int64_t from,
                        void *arg[])
{
    const LsProgram *p = x->g->p;
    const LsStep *step = &p->phase.update.step[s->step];
    memset(arg, 0, LS_SLICE_ARGUMENTS * sizeof *arg);
    for (int k = 0; k < step->narg; k++) {
        const LsAddress at = p->argument.address[step->arg + (uint32_t)k];
        arg[k] = x->g->arg[step->arg + (uint32_t)k];
        if (at.space == LS_AT_SLICE)
            arg[k] = ls_slice_state(x, at.offset / x->r->sum_bytes, ls_slice_place(x, b, from));
    }
    arg[0] = (char *)arg[0] + (from - s->at);
}
