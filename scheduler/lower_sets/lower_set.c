/* scheduler/lower_sets/lower_set.c -- enumerates lower sets, and measures each for the DP. */
#include "scheduler/lower_sets/lower_set.h"

#include <stdlib.h>
#include <string.h>

/* Returns the forward edges, one per tensor read. */
static LsRows edges_of(LsForward *f, bool backwards)
{
    const LsProb *p = f->prob;
    LsPairs edges = {0};
    for (uint32_t v = 0; v < f->n; v++)
        for (uint32_t k = p->in.at[f->node[v]]; k < p->in.at[f->node[v] + 1]; k++) {
            uint32_t u = f->vertex[p->maker[p->in.id[k]]];
            ls_pairs_add(f->arena, &edges, backwards ? v : u, backwards ? u : v);
        }
    return ls_rows(f->arena, &edges, f->n);
}

LsForward *ls_forward_new(LsArena *arena, const LsProb *p)
{
    LsForward *f = ls_arena_alloc(arena, 1, sizeof *f);
    f->prob = p;
    f->arena = arena;
    f->node = ls_arena_alloc(f->arena, p->n + 1u, sizeof *f->node);
    f->vertex = ls_arena_alloc(f->arena, p->n + 1u, sizeof *f->vertex);
    for (uint32_t i = 0; i < p->n; i++) {
        f->vertex[i] = p->forward[i] ? f->n : LS_NO_ID;
        if (p->forward[i])
            f->node[f->n++] = i;
    }
    f->nword = f->n / 64 + 1;
    f->mem = ls_arena_alloc(f->arena, f->n + 1u, sizeof *f->mem);
    f->time = ls_arena_alloc(f->arena, f->n + 1u, sizeof *f->time);
    f->stuck = ls_arena_alloc(f->arena, f->nword, sizeof *f->stuck);
    for (uint32_t v = 0; v < f->n; v++) {
        uint32_t i = f->node[v];
        for (uint32_t k = p->out.at[i]; k < p->out.at[i + 1]; k++)
            f->mem[v] += p->size[p->out.id[k]];
        f->time[v] = p->cost[i];
        if (p->stuck[i])
            ls_bit_add(f->stuck, v);
    }
    f->pred = edges_of(f, true);
    f->succ = edges_of(f, false);
    return f;
}

int64_t ls_cut_edge(const LsForward *f, const uint64_t *low, uint64_t *keep, uint64_t *work)
{
    uint64_t *next = work, *beside = work + f->nword;
    int64_t halo = 0;
    memset(keep, 0, f->nword * sizeof *keep);
    memset(work, 0, 2 * f->nword * sizeof *work);
    for (uint32_t v = 0; v < f->n; v++) {
        if (!ls_bit(low, v))
            continue;
        bool edge = ls_bit(f->stuck, v);
        for (uint32_t k = f->succ.at[v]; k < f->succ.at[v + 1]; k++)
            if (!ls_bit(low, f->succ.id[k])) {
                edge = true;
                ls_bit_add(next, f->succ.id[k]);
            }
        if (edge)
            ls_bit_add(keep, v);
    }
    for (uint32_t v = 0; v < f->n; v++) {
        if (!ls_bit(next, v))
            continue;
        halo += f->mem[v];
        for (uint32_t k = f->pred.at[v]; k < f->pred.at[v + 1]; k++)
            ls_bit_add(beside, f->pred.id[k]);
    }
    for (uint32_t v = 0; v < f->n; v++)
        if (ls_bit(beside, v) && !ls_bit(low, v))
            halo += f->mem[v];
    return halo;
}

static void measure(const LsForward *f, LsFamily *fam, uint32_t i, uint64_t *work)
{
    const uint64_t *low = fam->low + (size_t)i * fam->nword;
    fam->halo[i] = ls_cut_edge(f, low, fam->keep + (size_t)i * fam->nword, work);
    for (uint32_t v = 0; v < f->n; v++)
        if (ls_bit(low, v)) {
            fam->mem[i] += f->mem[v];
            fam->time[i] += f->time[v];
        }
}

typedef struct Ranked { uint32_t size, nword; const uint64_t *set; } Ranked;

static int by_size(const void *x, const void *y)
{
    const Ranked *a = x, *b = y;
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    for (uint32_t w = a->nword; w-- > 0;)
        if (a->set[w] != b->set[w])
            return a->set[w] < b->set[w] ? -1 : 1;
    return 0;
}

bool ls_cut_step(const LsForward *f, const LsFamily *fam, uint32_t i, uint32_t j, LsCutStep *step)
{
    uint32_t nword = fam->nword;
    const uint64_t *from = fam->low + (size_t)i * nword, *to = fam->low + (size_t)j * nword;
    const uint64_t *keep = fam->keep + (size_t)j * nword;
    for (uint32_t w = 0; w < nword; w++)
        if (from[w] & ~to[w])
            return false;
    *step = (LsCutStep){i, 0, fam->time[j] - fam->time[i]};
    for (uint32_t w = 0; w < nword; w++)
        for (uint64_t s = keep[w] & ~from[w]; s != 0; s &= s - 1) {
            uint32_t v = 64 * w + (uint32_t)__builtin_ctzll(s);
            step->kept += f->mem[v];
            step->time -= f->time[v];
        }
    return true;
}

/* The DP runs many times over the same family, so its steps are priced once if there are not too
 * many. */
static void price_steps(const LsForward *f, LsFamily *fam)
{
    enum { MOST = 2500 };
    if (fam->n > MOST)
        return;
    uint32_t n = 0;
    fam->step = ls_arena_alloc(f->arena, (size_t)fam->n * fam->n / 2 + 1, sizeof *fam->step);
    fam->step_at = ls_arena_alloc(f->arena, fam->n + 1u, sizeof *fam->step_at);
    for (uint32_t j = 0; j < fam->n; j++) {
        fam->step_at[j] = n;
        for (uint32_t i = 0; i < j; i++)
            n += ls_cut_step(f, fam, i, j, &fam->step[n]);
    }
    fam->step_at[fam->n] = n;
}

/* Sorts the sets, drops duplicates, and measures each. */
static LsFamily *family_of(const LsForward *f, const uint64_t *set, uint32_t n, bool whole)
{
    LsArena *arena = f->arena;
    LsFamily *fam = ls_arena_alloc(arena, 1, sizeof *fam);
    Ranked *rank = ls_arena_alloc(arena, n, sizeof *rank);
    for (uint32_t i = 0; i < n; i++) {
        rank[i] = (Ranked){0, f->nword, set + (size_t)i * f->nword};
        for (uint32_t w = 0; w < f->nword; w++)
            rank[i].size += (uint32_t)__builtin_popcountll(rank[i].set[w]);
    }
    qsort(rank, n, sizeof *rank, by_size);
    fam->nword = f->nword;
    fam->whole = whole;
    fam->low = ls_arena_alloc(arena, (size_t)n * f->nword, sizeof *fam->low);
    fam->keep = ls_arena_alloc(arena, (size_t)n * f->nword, sizeof *fam->keep);
    fam->halo = ls_arena_alloc(arena, n, sizeof *fam->halo);
    fam->mem = ls_arena_alloc(arena, n, sizeof *fam->mem);
    fam->time = ls_arena_alloc(arena, n, sizeof *fam->time);
    uint64_t *work = ls_arena_alloc(arena, 2 * f->nword, sizeof *work);
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && by_size(&rank[i - 1], &rank[i]) == 0)
            continue;
        memcpy(fam->low + (size_t)fam->n * f->nword, rank[i].set, f->nword * sizeof *work);
        measure(f, fam, fam->n++, work);
    }
    price_steps(f, fam);
    return fam;
}

LsFamily *ls_family_of(const LsForward *f, const uint64_t *set, uint32_t n)
{
    return family_of(f, set, n, false);
}

static bool holds_preds(const LsForward *f, const uint64_t *set, uint32_t v)
{
    for (uint32_t k = f->pred.at[v]; k < f->pred.at[v + 1]; k++)
        if (!ls_bit(set, f->pred.id[k]))
            return false;
    return true;
}

/* Enumerates in falling lexicographic order of the vertices taken. The first set is everything.
 * Each next set drops the last vertex taken and takes all later vertices that it can. Every lower
 * set comes once, without a table. */
LsFamily *ls_family_all(const LsForward *f, uint32_t most)
{
    LsArena *arena = f->arena;
    uint64_t *now = ls_arena_alloc(arena, f->nword, sizeof *now), *set = NULL;
    uint32_t n = 0, room = 0;
    for (uint32_t v = 0; v < f->n; v++)
        ls_bit_add(now, v);
    for (;;) {
        if (n == most)
            return NULL;
        if (n == room)
            set = ls_arena_grow(arena, set, n, n + 1u, f->nword * sizeof *set, &room);
        memcpy(set + (size_t)n++ * f->nword, now, f->nword * sizeof *now);
        uint32_t v = f->n;
        while (v > 0 && !ls_bit(now, v - 1))
            v--;
        if (v == 0)
            return family_of(f, set, n, true);
        now[(v - 1) / 64] &= ~(UINT64_C(1) << ((v - 1) % 64));
        for (; v < f->n; v++)
            if (holds_preds(f, now, v))
                ls_bit_add(now, v);
    }
}

/* Counts one set per vertex (all differ in their last vertex), the empty set, and the whole set
 * unless it belongs to the only vertex without successors. */
uint32_t ls_family_pruned_size(const LsForward *f)
{
    uint32_t last = 0;
    for (uint32_t v = 0; v < f->n; v++)
        last += f->succ.at[v] == f->succ.at[v + 1];
    return f->n + 1 + (last > 1);
}

LsFamily *ls_family_pruned(const LsForward *f)
{
    uint32_t n = f->n + 2;
    uint64_t *set = ls_arena_alloc(f->arena, (size_t)n * f->nword, sizeof *set);
    for (uint32_t v = 0; v < f->n; v++) {           /* rows 0 .. n-1; row n is the empty set */
        uint64_t *mine = set + (size_t)v * f->nword;
        ls_bit_add(mine, v);
        for (uint32_t k = f->pred.at[v]; k < f->pred.at[v + 1]; k++)
            for (uint32_t w = 0; w < f->nword; w++)
                mine[w] |= set[(size_t)f->pred.id[k] * f->nword + w];
        ls_bit_add(set + (size_t)(f->n + 1) * f->nword, v);
    }
    return family_of(f, set, n, false);
}
