/* scheduler/front.c -- see the header. */
#include "scheduler/front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums of the same costs in another order differ by less. */
static bool dearer(double a, double b)
{
    return a > b + 1e-9 * b;
}

/* Items that cost no more than that. */
static uint32_t count_until(const LsFront *f, double cost)
{
    uint32_t lo = 0, hi = f->n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (!dearer(f->item[mid].cost, cost))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool takes(const LsFront *f, double cost, int64_t peak)
{
    uint32_t n = count_until(f, cost);
    return n == 0 || f->item[n - 1].peak > peak;
}

static void *must(void *p)
{
    if (p == NULL) {
        fprintf(stderr, "lowerset: out of memory\n");
        exit(1);
    }
    return p;
}

void ls_front_offer(LsFront *f, const LsTape *t)
{
    int64_t peak = ls_tape_peak(t);
    if (!takes(f, t->cost, peak))
        return;
    uint32_t at = 0, end;
    while (at < f->n && dearer(t->cost, f->item[at].cost))
        at++;
    for (end = at; end < f->n && f->item[end].peak >= peak; end++)
        free(f->item[end].seq.node);
    if (f->n + 1 > f->room) {
        f->room = 2 * f->room + 16;
        f->item = must(realloc(f->item, f->room * sizeof *f->item));
    }
    memmove(f->item + at + 1, f->item + end, (f->n - end) * sizeof *f->item);
    f->n = f->n - end + at + 1;
    f->item[at] = (LsFrontItem){t->cost, peak,
                                {must(malloc((t->n + 1) * sizeof(uint32_t))), 0}};
    ls_tape_store(t, &f->item[at].seq);
}

const LsFrontItem *ls_front_best(const LsFront *f, int64_t most)
{
    uint32_t lo = 0, hi = f->n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (f->item[mid].peak > most)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < f->n ? &f->item[lo] : NULL;
}

void ls_front_free(LsFront *f)
{
    for (uint32_t k = 0; k < f->n; k++)
        free(f->item[k].seq.node);
    free(f->item);
    *f = (LsFront){0};
}
