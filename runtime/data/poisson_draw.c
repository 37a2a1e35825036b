/* runtime/data/poisson_draw.c -- see poisson_draw.h.
 *
 * The number of samples that are left out before the next one taken has a geometric distribution:
 * it is at least g with probability (1 - rate)^g. Drawing these numbers takes time by the samples
 * taken, not by all samples. */
#include "runtime/data/poisson_draw.h"

#include <math.h>

/* Moves `next` from a sample that may be taken to the next one that is. */
static void skip(LsDraw *d)
{
    const uint64_t bits = ls_key_bits(&d->key, (uint64_t)d->update, d->gaps++) >> 11;
    const double u = (double)(bits + 1) * 0x1p-53;              /* above 0, at most 1 */
    const double gap = log(u) / log1p(-d->rate);                /* 0 where the rate is 1 */
    d->next = gap < (double)(d->samples - d->next) ? d->next + (int64_t)gap : d->samples;
}

static void begin_update(LsDraw *d, int64_t update)
{
    d->update = update;
    d->gaps = 0;
    d->next = 0;
    skip(d);
}

void ls_draw_begin(LsDraw *d, const LsSecretKey *key, double rate, int64_t samples, int64_t update)
{
    *d = (LsDraw){.key = *key, .rate = rate, .samples = samples};
    begin_update(d, update);
}

int64_t ls_draw_take(LsDraw *d, int64_t most, int64_t *sample, bool *last)
{
    int64_t n = 0;
    while (n < most && d->next < d->samples) {
        sample[n++] = d->next++;
        if (d->next < d->samples)
            skip(d);
    }
    *last = d->next == d->samples;
    if (*last)
        begin_update(d, d->update + 1);
    return n;
}
