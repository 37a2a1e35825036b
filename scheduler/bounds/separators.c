/* scheduler/bounds/separators.c -- first spread over the path, then around the places with
 * prices. */
#include "scheduler/bounds/separators.h"

#include <string.h>

uint32_t ls_separators_choose(const LsBoundGraph *b, int64_t budget, uint32_t want, uint32_t *sep)
{
    double total = 0, sum = 0;
    uint32_t n = 0, stretch = UINT32_MAX;
    for (uint32_t j = 0; j < b->npath; j++)
        total += b->crowd[j] > budget ? (double)(b->crowd[j] - budget) : 0;
    for (uint32_t j = 0; j < b->npath; j++) {
        if (b->crowd[j] <= budget)
            continue;
        double part = (double)(b->crowd[j] - budget);
        uint32_t at = (uint32_t)(want * ((sum + part / 2) / total));
        sum += part;
        if (n > 0 && at == stretch && b->crowd[sep[n - 1]] >= b->crowd[j])
            continue;
        n -= n > 0 && at == stretch;
        stretch = at;
        sep[n++] = j;
    }
    return n;
}

enum { FEW = 200 };             /* nodes: below, all separators stay */

/* Marks the crowded place `step` crowded places away from j, if there is one. */
static void mark_near(const LsBoundGraph *b, int64_t budget, uint32_t j, int64_t step, bool *mark)
{
    int64_t at = j, move = step < 0 ? -1 : 1;
    for (int64_t left = step * move; left > 0; left--) {
        do
            at += move;
        while (at >= 0 && at < b->npath && b->crowd[at] <= budget);
        if (at < 0 || at >= b->npath)
            return;
    }
    mark[at] = true;
}

uint32_t ls_separators_refine(const LsBoundDual *d, int64_t budget, uint32_t step, uint32_t want,
                              uint32_t *sep, double *price)
{
    const LsBoundNet *net = d->net;
    const LsBoundGraph *b = net->b;
    LsArena *arena = ls_arena_new();
    bool *mark = ls_arena_alloc(arena, b->npath + 1u, sizeof *mark);
    double *at = ls_arena_alloc(arena, b->npath + 1u, sizeof *at), most = 0;
    for (uint32_t k = 0; k < net->nsep; k++) {
        at[net->sep[k]] = d->price[k];
        most = d->price[k] > most ? d->price[k] : most;
    }
    for (uint32_t k = 0; k < net->nsep; k++)        /* cases may need separators without a price */
        mark[net->sep[k]] = b->p->n <= FEW;
    for (uint32_t k = 0; k < net->nsep; k++)        /* far places first: near ones may not fit */
        for (int near = 0; near < 2 && d->price[k] > 1e-4 * most; near++) {
            mark[net->sep[k]] = true;
            mark_near(b, budget, net->sep[k], near ? 1 : step, mark);
            mark_near(b, budget, net->sep[k], near ? -1 : -(int64_t)step, mark);
        }
    uint32_t n = 0, extra = 0;
    for (uint32_t j = 0; j < b->npath; j++)
        extra += mark[j];
    for (uint32_t j = b->npath; extra > want && j-- > 0;)
        if (mark[j] && at[j] == 0) {
            mark[j] = false;
            extra--;
        }
    for (uint32_t j = 0; j < b->npath && n < want; j++)
        if (mark[j]) {
            price[n] = at[j];
            sep[n++] = j;
        }
    ls_arena_free(arena);
    return n;
}
