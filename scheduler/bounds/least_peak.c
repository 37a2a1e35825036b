/* scheduler/bounds/least_peak.c -- see the header. */
#include "scheduler/bounds/least_peak.h"

#include <math.h>
#include <stdlib.h>

#include "scheduler/relaxation/some_tensors.h"
#include "scheduler/state_search/best_first_search.h"

typedef struct Least {
    const LsBoundGraph *b;
    int64_t known;              /* the bound so far, bytes */
    uint32_t left;              /* states */
    bool *counts;               /* by tensor: of at least the size in work */
} Least;

static int by_size(const void *x, const void *y)
{
    const int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a < b) - (a > b);
}

/* Writes to `size` sizes of tensors, falling, each at most `step` of the one before; returns their
 * number. */
static uint32_t find_sizes(const LsProb *p, int64_t *size)
{
    const double step = 0.75;
    uint32_t n = 0, found = 0;
    for (uint32_t t = 0; t < p->nt; t++)
        if (ls_bound_bytes(p, t) > 0)
            size[n++] = ls_bound_bytes(p, t);
    qsort(size, n, sizeof *size, by_size);
    for (uint32_t k = 0; k < n; k++)
        if (found == 0 || (double)size[k] <= step * (double)size[found - 1])
            size[found++] = size[k];
    return found;
}

static void raise_to(Least *x, LsOptimum o)
{
    if (o.value < INFINITY && o.value > (double)x->known)
        x->known = (int64_t)o.value;
}

/* Searches the graph of tensors of at least `size` bytes. Returns whether the search ended. */
static bool search(Least *x, LsArena *arena, int64_t size)
{
    enum { LARGE = 3000 };
    const LsProb *p = x->b->p;
    for (uint32_t t = 0; t < p->nt; t++)
        x->counts[t] = ls_bound_bytes(p, t) >= size;
    const LsProb *some = ls_some_tensors(arena, x->b, x->counts);
    if (some->n > LARGE)
        return false;
    const LsBoundGraph *b = ls_bound_graph_new(arena, some);
    if (b->npath == 0)
        return true;
    const uint32_t most = x->left / 2;
    LsOptimum o = ls_optimum_peak_of(b, b->path[b->npath - 1], x->known, most);
    x->left -= o.states;
    raise_to(x, o);
    return o.states < most;
}

int64_t ls_least_peak(const LsBoundGraph *b, int64_t known, uint32_t most)
{
    enum { PATIENCE = 2 };
    LsArena *arena = ls_arena_new();
    Least x = {.b = b, .known = known, .left = most};
    int64_t *size = ls_arena_alloc(arena, b->p->nt + 1u, sizeof *size);
    x.counts = ls_arena_alloc(arena, b->p->nt + 1u, sizeof *x.counts);
    const uint32_t n = find_sizes(b->p, size);
    for (uint32_t k = 0, failures = 0; k < n && failures < PATIENCE && x.left > 1; k++) {
        LsArena *one = ls_arena_new();
        failures += !search(&x, one, size[k]);
        ls_arena_free(one);
    }
    ls_arena_free(arena);
    return x.known;
}
