/* runtime/data/hold_out.c -- see hold_out.h. Nothing is stored: samples are found by arithmetic. */
#include "runtime/data/hold_out.h"

#include "runtime/base/seed_mix.h"

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
