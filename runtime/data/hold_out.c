/* runtime/data/hold_out.c -- see hold_out.h. Nothing is stored: samples are found by arithmetic. */
#include "runtime/data/hold_out.h"

#include "runtime/base/number.h"
#include "runtime/base/seed_mix.h"
#include "runtime/data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The floor of a * b / c, for a result that fits. */
static int64_t ratio(int64_t a, int64_t b, int64_t c)
{
    return (int64_t)((unsigned __int128)a * (uint64_t)b / (uint64_t)c);
}

/* Where stretch k begins. */
static int64_t start(const LsHoldOut *h, int64_t k) { return ratio(k, h->all, h->held); }

/* The sample of stretch k that is held out. */
static int64_t drawn(const LsHoldOut *h, int64_t k)
{
    const int64_t from = start(h, k);
    const uint64_t draw = ls_mix(ls_mix(h->seed + 0x632be59bd9b4e019u) + (uint64_t)k);
    return from + (int64_t)((unsigned __int128)draw * (uint64_t)(start(h, k + 1) - from) >> 64);
}

int64_t ls_hold_out_samples(const LsHoldOut *h)
{
    return h->is_held ? h->held : h->all - h->held - h->gap;
}

int64_t ls_hold_out_sample(const LsHoldOut *h, int64_t i)
{
    if (h->held == 0)
        return i;
    if (h->stream)
        return h->is_held ? h->all - h->held + i : i;
    if (h->is_held)
        return drawn(h, i);
    /* k stretches leave the floor of k * rest / held samples: the last k that leaves no more than
     * i */
    const int64_t rest = h->all - h->held;
    const int64_t k = ratio(i + 1, h->held, rest)
                      - ((unsigned __int128)(i + 1) * (uint64_t)h->held % (uint64_t)rest == 0);
    const int64_t at = i + k;           /* without the one of this stretch that is held out */
    return at + (at >= drawn(h, k));
}

/* Tokens of a window, and from one to the next, if the data are windows of a stream; else 0. */
static int64_t window_of(const LsDataset *d, int64_t *stride)
{
    for (uint32_t k = 0; k < d->p->ninput; k++)
        if (d->source[k].stream || d->source[k].token != NULL) {
            *stride = d->source[k].stride;
            return d->source[k].per_sample;
        }
    return 0;
}

/* "10%" or "500" of `all`; -1: it is neither. */
static int64_t amount(const char *text, int64_t all)
{
    char number[32];
    const size_t n = strlen(text);
    int64_t whole;
    double part;
    if (n > 1 && n < sizeof number && text[n - 1] == '%') {
        memcpy(number, text, n - 1);
        number[n - 1] = '\0';
        if (!ls_number_real(number, 0, 100, &part) || !(part > 0 && part < 100))
            return -1;
        whole = (int64_t)floor((double)all * part / 100 + 0.5);
        return whole > 0 ? whole : 1;
    }
    return ls_number_whole(text, 1, INT64_MAX, &whole) ? whole : -1;
}

bool ls_dataset_hold_out(LsDataset *d, LsDataset *rest, const char *held, uint64_t seed, LsError *e)
{
    int64_t stride = 1;
    const int64_t n = amount(held, d->samples), window = window_of(d, &stride);
    if (n < 0)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--val-split=%s: a number of samples, or a share of them as 10%%", held);
    LsHoldOut part = {n, d->samples, window > 0 ? window / stride : 0, seed, window > 0, false};
    if (n >= d->samples || ls_hold_out_samples(&part) < 1)
        return ls_fail(e, LS_EXIT_DATA,
                       "--val-split=%s: of %" PRId64 " %s, %" PRId64
                       " held out leave none to train on",
                       held, d->samples, window > 0 ? "windows of tokens" : "samples", n);
    *rest = *d;
    rest->borrowed = true;
    d->part = rest->part = part;
    rest->part.is_held = true;
    d->samples = ls_hold_out_samples(&d->part);
    rest->samples = n;
    return true;
}
