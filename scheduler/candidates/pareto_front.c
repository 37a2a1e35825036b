/* scheduler/candidates/pareto_front.c -- see the header. */
#include "scheduler/candidates/pareto_front.h"

#include <string.h>

#include "scheduler/candidates/plan_steps.h"

/* Returns the number of items that cost at most `cost`. */
static uint32_t count_until(const LsFront *f, double cost)
{
    uint32_t lo = 0, hi = f->n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (!ls_dearer(f->item[mid].cost, cost))
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

/* Replaces items [at, end) by one item with room for n runs. */
static LsFrontItem *open_item(LsFront *f, uint32_t at, uint32_t end, uint32_t n)
{
    uint32_t dropped = end - at, all = f->n + f->nspare;
    LsFrontItem fresh = {0};
    if (f->arena == NULL)
        f->arena = ls_arena_new();
    f->item = ls_arena_grow(f->arena, f->item, all, all + 1u, sizeof *f->item, &f->room);
    for (uint32_t k = 0; k < dropped; k++) {        /* to the spare items, to reuse their room */
        LsFrontItem old = f->item[at];
        memmove(f->item + at, f->item + at + 1, (all - at - 1) * sizeof old);
        f->item[all - 1] = old;
    }
    f->n -= dropped;
    f->nspare += dropped;
    if (f->nspare > 0) {
        fresh = f->item[all - 1];
        f->nspare--;
        all--;
    }
    memmove(f->item + at + 1, f->item + at, (all - at) * sizeof fresh);
    if (fresh.room < n) {
        fresh.room = n + n / 4;
        fresh.seq.node = ls_arena_alloc(f->arena, fresh.room + 1u, sizeof *fresh.seq.node);
    }
    f->n++;
    f->item[at] = fresh;
    return &f->item[at];
}

/* Returns the item for a sequence of n runs with this cost and peak, and drops the items it
 * dominates. Returns NULL if an item dominates the sequence. */
static LsFrontItem *place_for(LsFront *f, double cost, int64_t peak, uint32_t n)
{
    uint32_t at = 0, end;
    if (!takes(f, cost, peak))
        return NULL;
    while (at < f->n && ls_dearer(cost, f->item[at].cost))
        at++;
    for (end = at; end < f->n && f->item[end].peak >= peak; end++)
        ;
    LsFrontItem *item = open_item(f, at, end, n);
    item->cost = cost;
    item->peak = peak;
    return item;
}

void ls_front_offer(LsFront *f, const LsTape *t)
{
    LsFrontItem *item = place_for(f, t->cost, ls_tape_peak(t), t->n);
    if (item != NULL)
        ls_tape_store(t, &item->seq);
}

void ls_front_move(LsFront *f, LsFront *from)
{
    for (uint32_t k = 0; k < from->n; k++) {
        const LsFrontItem *it = &from->item[k];
        LsFrontItem *item = place_for(f, it->cost, it->peak, it->seq.n);
        if (item == NULL)
            continue;
        memcpy(item->seq.node, it->seq.node, it->seq.n * sizeof *it->seq.node);
        item->seq.n = it->seq.n;
    }
    from->nspare += from->n;
    from->n = 0;
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
    ls_arena_free(f->arena);
    *f = (LsFront){0};
}
