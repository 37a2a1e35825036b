/* scheduler/plan/spread_offsets.c -- see spread_offsets.h. Each piece in turn moves to the place of
 * least harm while the others stay, until none moves. */
#include "scheduler/plan/spread_offsets.h"

#include "scheduler/plan/run_dependencies.h"

#include <stdlib.h>
#include <string.h>

enum { SWEEPS = 8 };            /* most sweeps; two or three suffice */

/* A run beside others is assumed to end within LATE times its own cost plus START ns, and to be in
 * no run's way afterwards. */
static const double LATE = 3, START = 20e3;

typedef struct Span { int64_t lo, hi; double harm; } Span;      /* bytes of the arena */

typedef struct Spread {
    LsPieces *p;
    LsWaits waits;              /* for values alone, whatever their offsets */
    int64_t arena, alignment;
    LsRows user;                /* by piece: runs that touch it, rising */
    Span *taken; uint32_t ntaken;       /* where the piece cannot go */
    Span *near; uint32_t nnear;         /* where it would do harm */
} Spread;

static LsRows users_of(LsArena *arena, const LsPieces *p)
{
    LsPairs users = {0};
    for (uint32_t r = 0; r < p->nrun; r++)
        for (uint32_t k = p->of[r]; k < p->of[r + 1]; k++)
            ls_pairs_add(arena, &users, p->touch[k].piece, r);
    return ls_rows(arena, &users, p->npiece);
}

/* Returns roughly the ns lost when `late` lies where `early` did: the cost of each run that touched
 * `early`, less the longer it has ended when `late` begins. */
static double harm(const Spread *s, uint32_t early, uint32_t late)
{
    const LsPieces *p = s->p;
    uint32_t begins = p->piece[late].first;
    double sum = 0;
    for (uint32_t k = s->user.at[early]; k < s->user.at[early + 1]; k++) {
        uint32_t r = s->user.id[k];
        double cost = p->begin[r + 1] - p->begin[r], over = LATE * cost + START;
        double since = p->begin[begins] - p->begin[r + 1];
        if (since < over && !ls_waits_for(&s->waits, begins, r))
            sum += cost * (over - since) / over;
    }
    return sum;
}

/* Finds the pieces that live together with piece i, and those that live shortly before or after
 * it. */
static void look_around(Spread *s, uint32_t i)
{
    const LsPieces *p = s->p;
    const LsPiece *me = &p->piece[i];
    s->ntaken = s->nnear = 0;
    for (uint32_t k = 0; k < p->npiece; k++) {
        const LsPiece *it = &p->piece[k];
        Span span = {it->offset, it->offset + it->bytes, 0};
        if (k == i || it->offset < 0 || it->bytes == 0)
            continue;
        if (it->first <= me->last && me->first <= it->last) {
            s->taken[s->ntaken++] = span;
            continue;
        }
        span.harm = it->last < me->first ? harm(s, k, i) : harm(s, i, k);
        if (span.harm > 0)
            s->near[s->nnear++] = span;
    }
}

static double harm_at(const Spread *s, int64_t lo, int64_t bytes)
{
    double sum = 0;
    for (uint32_t k = 0; k < s->nnear; k++)
        if (s->near[k].lo < lo + bytes && lo < s->near[k].hi)
            sum += s->near[k].harm;
    return sum;
}

typedef struct Place { int64_t lo; double harm; } Place;

/* Tries the place at `lo`, rounded down, if it lies within [from, to) and beats the best so far. */
static void try_place(const Spread *s, int64_t lo, int64_t bytes, int64_t from, int64_t to,
                      Place *best)
{
    lo = lo / s->alignment * s->alignment;
    if (lo < from || lo + bytes > to)
        return;
    double h = harm_at(s, lo, bytes);
    if (h < best->harm)
        *best = (Place){lo, h};
}

/* Tries the ends of a gap, and the places where a harmful piece in it ends or begins. */
static void try_gap(const Spread *s, int64_t from, int64_t to, int64_t bytes, Place *best)
{
    if (to - from < bytes)
        return;
    try_place(s, from, bytes, from, to, best);
    for (uint32_t k = 0; k < s->nnear && best->harm > 0; k++) {
        try_place(s, ls_align(s->near[k].hi, s->alignment), bytes, from, to, best);
        try_place(s, s->near[k].lo - bytes, bytes, from, to, best);
    }
    try_place(s, to - bytes, bytes, from, to, best);
}

static int by_place(const void *x, const void *y)
{
    const Span *a = x, *b = y;
    return a->lo != b->lo ? (a->lo < b->lo ? -1 : 1) : (a->hi > b->hi) - (a->hi < b->hi);
}

/* Moves piece i to its best place; returns whether it moved. */
static bool move(Spread *s, uint32_t i)
{
    LsPiece *me = &s->p->piece[i];
    look_around(s, i);
    Place best = {me->offset, harm_at(s, me->offset, me->bytes)};
    if (best.harm <= 0)
        return false;
    qsort(s->taken, s->ntaken, sizeof *s->taken, by_place);
    int64_t from = 0;
    for (uint32_t k = 0; k < s->ntaken; k++) {
        try_gap(s, from, s->taken[k].lo, me->bytes, &best);
        int64_t end = ls_align(s->taken[k].hi, s->alignment);
        from = end > from ? end : from;
    }
    try_gap(s, from, s->arena, me->bytes, &best);
    bool better = best.lo != me->offset;
    me->offset = best.lo;
    return better;
}

/* Writes the new offsets into new lists, as plans share the old ones. */
static void store(LsArena *arena, const LsPieces *p, const LsDag *dag, LsPlan *plan)
{
    LsPlanStep *old = plan->step;
    uint32_t run = 0;
    plan->arena = 0;
    plan->offset = ls_arena_alloc(arena, plan->noffset + 1u, sizeof *plan->offset);
    plan->step = ls_arena_alloc(arena, plan->nstep + 1u, sizeof *plan->step);
    memcpy(plan->step, old, plan->nstep * sizeof *old);
    for (uint32_t k = 0; k < p->npiece; k++)
        if (p->piece[k].offset >= 0 && p->piece[k].offset + p->piece[k].bytes > plan->arena)
            plan->arena = p->piece[k].offset + p->piece[k].bytes;
    for (uint32_t s = 0; s < plan->nstep; s++) {
        LsPlanStep *step = &plan->step[s];
        if (step->free)
            continue;
        for (uint32_t k = 0; k < dag->node[step->id].nout; k++)
            plan->offset[step->offset + k] = p->piece[p->result[step->offset + k]].offset;
        if (p->workspace[run] != LS_NO_PIECE)
            step->workspace_offset = p->piece[p->workspace[run]].offset;
        run++;
    }
}

void ls_spread(LsArena *arena, const LsDag *dag, LsPlan *plan)
{
    LsPieces p = ls_pieces(arena, dag, plan);
    Spread s = {.p = &p, .waits = ls_waits(arena, &p, true), .arena = plan->arena,
                .alignment = dag->alignment, .user = users_of(arena, &p),
                .taken = ls_arena_alloc(arena, p.npiece + 1u, sizeof *s.taken),
                .near = ls_arena_alloc(arena, p.npiece + 1u, sizeof *s.near)};
    bool moved = true;
    for (int sweep = 0; sweep < SWEEPS && moved; sweep++) {
        moved = false;
        for (uint32_t i = 0; i < p.npiece; i++)
            if (p.piece[i].offset >= 0 && p.piece[i].bytes > 0)
                moved |= move(&s, i);
    }
    store(arena, &p, dag, plan);
}
