/* runtime/data/split_dataset.c -- --val-split: a dataset becomes two, of the same memory. */
#include "runtime/base/number.h"
#include "runtime/data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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
    d->held_out = rest->held_out = part;
    rest->held_out.is_held = true;
    d->samples = ls_hold_out_samples(&d->held_out);
    rest->samples = n;
    return true;
}
