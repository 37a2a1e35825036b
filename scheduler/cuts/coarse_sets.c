/* scheduler/cuts/coarse_sets.c -- see the header.
 *
 * All operands of a group that lie outside are those of its first vertex, so groups by their first
 * vertex are in a topological order. */
#include "scheduler/cuts/coarse_sets.h"

#include <string.h>

/* By vertex: its group. Returns the number of groups. */
static uint32_t group_vertices(const LsForward *f, const double *ns, double light, uint32_t *group)
{
    uint32_t n = 0;
    for (uint32_t v = 0; v < f->n; v++) {
        uint32_t at = f->pred.at[v], end = f->pred.at[v + 1], own = LS_NO_ID;
        if (at < end && ns[v] <= light)
            own = group[f->pred.id[at]];
        for (; at < end; at++)
            if (group[f->pred.id[at]] != own)
                own = LS_NO_ID;
        group[v] = own != LS_NO_ID ? own : n++;
    }
    return n;
}

/* The graph of the groups, with what enumeration and measuring look at. */
static LsForward *group_graph(LsArena *arena, const LsForward *f, const uint32_t *group, uint32_t n)
{
    LsForward *g = ls_arena_alloc(arena, 1, sizeof *g);
    LsPairs pred = {0}, succ = {0};
    *g = (LsForward){.prob = f->prob, .arena = arena, .n = n, .nword = n / 64 + 1};
    g->mem = ls_arena_alloc(arena, n + 1u, sizeof *g->mem);
    g->time = ls_arena_alloc(arena, n + 1u, sizeof *g->time);
    g->stuck = ls_arena_alloc(arena, g->nword, sizeof *g->stuck);
    for (uint32_t v = 0; v < f->n; v++)
        for (uint32_t k = f->pred.at[v]; k < f->pred.at[v + 1]; k++) {
            const uint32_t from = group[f->pred.id[k]];
            if (from == group[v])
                continue;
            ls_pairs_add(arena, &pred, group[v], from);
            ls_pairs_add(arena, &succ, from, group[v]);
        }
    g->pred = ls_rows(arena, &pred, n);
    g->succ = ls_rows(arena, &succ, n);
    return g;
}

LsFamily *ls_coarse_sets(LsArena *arena, const LsForward *f, const double *ns, double light,
                         uint32_t most)
{
    LsArena *tmp = ls_arena_new();
    uint32_t *group = ls_arena_alloc(tmp, f->n + 1u, sizeof *group);
    const LsForward *g = group_graph(tmp, f, group, group_vertices(f, ns, light, group));
    const LsFamily *of = ls_family_all(g, most);
    LsFamily *out = NULL;
    if (of != NULL) {
        uint64_t *set = ls_arena_alloc(arena, (size_t)of->n * f->nword, sizeof *set);
        for (uint32_t i = 0; i < of->n; i++)
            for (uint32_t v = 0; v < f->n; v++)
                if (ls_bit(of->low + (size_t)i * of->nword, group[v]))
                    ls_bit_add(set + (size_t)i * f->nword, v);
        out = ls_family_of(f, set, of->n);
    }
    ls_arena_free(tmp);
    return out;
}
