/* scheduler/lower_sets/branch_and_bound.c -- branch and bound over the DP of Kusumoto et al. 2019
 * (arXiv:1905.11722).
 *
 * A strategy recomputes every vertex that it does not keep. So each kept vertex gains its time
 * (time-centred) or loses it (memory-centred). A state at a set is a partial strategy up to the
 * set: the bytes kept, and the gain. Each set has a Pareto front of states: fewer bytes, more gain.
 *
 * A state is kept only if its gain plus the upper bound on what can still be added
 * (completion_bound.h) exceeds a floor. The floor starts just below the bound of all strategies and
 * is lowered until a strategy is found. Every state above the floor was kept, so this strategy is
 * optimal. The bound is mostly close, and few pairs of sets are examined: pairs of projections come
 * first, and a pair that no state can take is dropped with all its sets. */
#include "scheduler/lower_sets/branch_and_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/lower_sets/completion_bound.h"

/* of the bound, LsCeiling */
enum { MOST_LOOKS = 1000000000, LOOKS_A_POINT = 50, MOST_POINTS = 2000000 };

struct LsExact {
    const LsForward *f;
    const LsFamily *fam;
    const LsRelax *relax;
    uint32_t *edge_at, *edge;   /* by set: its boundary, without stuck vertices */
    int64_t *stuck;             /* by set: bytes of its stuck vertices */
};

/* A state: bytes kept and gain, without stuck vertices, which add the same to all states of a
 * set. */
/* set, at: the previous state */
typedef struct State { int64_t m; double g; uint32_t set, at; } State;
typedef struct Front { State *state; uint32_t n; } Front;   /* by rising bytes and gain */

typedef struct Reach { int64_t m; double g; } Reach;    /* a point of a projection's front, with
                                                         * stuck and loose vertices */
typedef struct Envelope { Reach *reach; uint32_t n; } Envelope;

/* A set with steps to a projection. most: upper bound on the gain of a strategy with such a step,
 * without loose gains. */
typedef struct Origin { double most; uint32_t set; } Origin;

typedef struct Solve {
    const LsExact *x;
    LsArena *arena;
    int64_t budget;
    bool price_last;
    double *gain;               /* by vertex: of keeping it */
    LsCeiling *ceiling;
    double *sum, *stuck;        /* by set: gain of all its vertices; of its stuck vertices */
    double *open, *edge_loose;  /* by set: loose gain outside it; of the vertices it keeps */
    double floor;               /* a strategy must gain more */
    Front *front;               /* by set */
    Envelope *env;              /* by projection */
    Origin *from; uint32_t nfrom;   /* origins of steps to the current projection, best first */
    State *work, *other, *add;  /* the front being made, a buffer, the new states */
    uint32_t nwork, room, add_room;
    Reach *all; uint32_t all_room;
    uint64_t most_looks, nlook; /* steps and states examined */
    uint64_t nstate;            /* states kept */
} Solve;

LsExact *ls_exact_new(LsArena *arena, const LsForward *f, const LsFamily *fam,
                      uint32_t projections)
{
    enum { USUAL = 1000 };
    LsExact *x = ls_arena_alloc(arena, 1, sizeof *x);
    uint32_t room = 0, n = 0;
    *x = (LsExact){.f = f, .fam = fam};
    projections = projections ? projections : USUAL;
    x->relax = ls_relax_new(arena, f, fam, fam->whole ? projections : fam->n);
    x->edge_at = ls_arena_alloc(arena, fam->n + 1u, sizeof *x->edge_at);
    x->stuck = ls_arena_alloc(arena, fam->n, sizeof *x->stuck);
    for (uint32_t i = 0; i < fam->n; i++) {
        x->edge_at[i] = n;
        x->edge = ls_arena_grow(arena, x->edge, n, n + f->n, sizeof *x->edge, &room);
        for (uint32_t w = 0; w < f->nword; w++)
            for (uint64_t s = fam->keep[(size_t)i * f->nword + w]; s != 0; s &= s - 1) {
                uint32_t v = 64 * w + (uint32_t)__builtin_ctzll(s);
                if (ls_bit(f->stuck, v))
                    x->stuck[i] += f->mem[v];
                else
                    x->edge[n++] = v;
            }
    }
    x->edge_at[fam->n] = n;
    return x;
}

/* ---- fronts ---- */

/* Returns how many states of z->work have at most m bytes; the last of them gains most. */
static uint32_t count_until(const Solve *z, int64_t m)
{
    uint32_t lo = 0, hi = z->nwork;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (z->work[mid].m <= m)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Merges n states of z->add into z->work; the tie-break is the earlier state. */
static void merge(Solve *z, uint32_t n)
{
    if (z->nwork + n > z->room) {
        z->room = 2 * (z->nwork + n) + 64;
        State *work = ls_arena_alloc(z->arena, z->room, sizeof *work);
        if (z->nwork > 0)
            memcpy(work, z->work, z->nwork * sizeof *work);
        z->work = work;
        z->other = ls_arena_alloc(z->arena, z->room, sizeof *z->other);
    }
    uint32_t i = 0, k = 0, to = 0;
    while (i < z->nwork || k < n) {
        bool old = k == n || (i < z->nwork && (z->work[i].m < z->add[k].m
                   || (z->work[i].m == z->add[k].m && z->work[i].g >= z->add[k].g)));
        const State *s = old ? &z->work[i++] : &z->add[k++];
        if (to == 0 || s->g > z->other[to - 1].g)
            z->other[to++] = *s;
    }
    State *work = z->work;
    z->work = z->other;
    z->other = work;
    z->nwork = to;
}

/* Returns what set j adds to the gain of its states: its stuck vertices and the loose gain still
 * open. */
static double beyond(const Solve *z, uint32_t j)
{
    return z->stuck[j] + z->open[j];
}

/* Offers the states of set i, plus m bytes and gain g, to set j. most: most bytes before the
 * step. */
static void carry(Solve *z, uint32_t i, uint32_t j, int64_t most, int64_t m, double g)
{
    const Front *from = &z->front[i];
    const LsCeiling *b = z->ceiling;
    const LsCeilingPoint *point = b->point[z->x->relax->of[j]];
    uint32_t npoint = b->n[z->x->relax->of[j]], q = 0, nadd = 0;
    uint32_t u = count_until(z, from->state[0].m + m);
    if (u > 0 && z->work[u - 1].g >= from->state[from->n - 1].g + g)
        return;                                     /* that state dominates all of them */
    if (from->n > z->add_room) {
        z->add_room = 2 * from->n;
        z->add = ls_arena_alloc(z->arena, z->add_room, sizeof *z->add);
    }
    z->nlook += from->n;
    for (uint32_t k = 0; k < from->n && from->state[k].m <= most; k++) {
        State s = {from->state[k].m + m, from->state[k].g + g, i, k};
        while (q < npoint && point[q].most < s.m + z->x->stuck[j])
            q++;
        if (q == npoint)
            break;
        while (u < z->nwork && z->work[u].m <= s.m)
            u++;
        if (s.g + beyond(z, j) + point[q].gain > z->floor && (u == 0 || z->work[u - 1].g < s.g))
            z->add[nadd++] = s;
    }
    if (nadd > 0)
        merge(z, nadd);
}

static bool holds(const LsFamily *fam, uint32_t j, uint32_t i)
{
    const uint64_t *a = fam->low + (size_t)i * fam->nword, *b = fam->low + (size_t)j * fam->nword;
    for (uint32_t w = 0; w < fam->nword; w++)
        if (a[w] & ~b[w])
            return false;
    return true;
}

/* Takes the step from set i to set j. */
static void step(Solve *z, uint32_t i, uint32_t j)
{
    const LsExact *x = z->x;
    const LsFamily *fam = x->fam;
    const uint64_t *low = fam->low + (size_t)i * fam->nword;
    int64_t most = z->budget - 2 * (fam->mem[j] - fam->mem[i]) - fam->halo[j] - x->stuck[i], m = 0;
    double g = 0;
    z->nlook++;
    if (z->front[i].state[0].m > most || !holds(fam, j, i))
        return;
    for (uint32_t k = x->edge_at[j]; k < x->edge_at[j + 1]; k++)
        if (!ls_bit(low, x->edge[k])) {
            m += x->f->mem[x->edge[k]];
            g += z->gain[x->edge[k]];
        }
    if (j == fam->n - 1 && !z->price_last)
        g = z->sum[j] - z->sum[i] - (z->stuck[j] - z->stuck[i]);
    carry(z, i, j, most, m, g);
}

/* ---- projections ---- */

static int by_bytes(const void *x, const void *y)
{
    const Reach *a = x, *b = y;
    if (a->m != b->m)
        return a->m < b->m ? -1 : 1;
    return a->g > b->g ? -1 : a->g < b->g;
}

/* Computes the front of the states of all sets of projection k. */
static void envelop(Solve *z, uint32_t k)
{
    const LsRelax *r = z->x->relax;
    uint32_t n = 0, to = 0;
    for (uint32_t q = r->fiber.at[k]; q < r->fiber.at[k + 1]; q++) {
        uint32_t i = r->fiber.id[q];
        const Front *f = &z->front[i];
        z->all = ls_arena_grow(z->arena, z->all, n, n + f->n, sizeof *z->all, &z->all_room);
        for (uint32_t s = 0; s < f->n; s++)
            z->all[n++] = (Reach){f->state[s].m + z->x->stuck[i], f->state[s].g + beyond(z, i)};
    }
    qsort(z->all, n, sizeof *z->all, by_bytes);
    for (uint32_t s = 0; s < n; s++)
        if (to == 0 || z->all[s].g > z->all[to - 1].g)
            z->all[to++] = z->all[s];
    z->env[k] = (Envelope){ls_arena_alloc(z->arena, to, sizeof *z->all), to};
    if (to > 0)
        memcpy(z->env[k].reach, z->all, to * sizeof *z->all);
}

/* Returns an upper bound on the gain of a state at r after step s to projection j. *q: the point of
 * j to start from, advanced. */
static double promise(const Solve *z, const LsCeilingStep *s, uint32_t j, Reach r, uint32_t *q)
{
    const LsCeiling *b = z->ceiling;
    while (*q < b->n[j] && b->point[j][*q].most < r.m + s->kept)
        ++*q;
    return *q == b->n[j] || r.m > s->most ? -INFINITY : r.g + s->gain + b->point[j][*q].gain;
}

/* Adds the sets of projection i whose states may go on to projection j. */
static void add_from(Solve *z, uint32_t i, uint32_t j)
{
    const LsRelax *r = z->x->relax;
    const Envelope *e = &z->env[i];
    if (e->n == 0 || !ls_relax_holds(r, j, i))
        return;
    LsCeilingStep s = ls_ceiling_step(z->ceiling, i, j);
    uint32_t k = 0, at = 0;
    while (k < e->n && promise(z, &s, j, e->reach[k], &at) <= z->floor)
        k++;
    if (k == e->n)
        return;
    for (uint32_t q = r->fiber.at[i]; q < r->fiber.at[i + 1]; q++) {
        uint32_t set = r->fiber.id[q];
        const Front *f = &z->front[set];
        double most = -INFINITY;
        at = 0;
        for (k = 0; k < f->n; k++)
            most = fmax(most, promise(z, &s, j, (Reach){f->state[k].m + z->x->stuck[set],
                                                f->state[k].g + beyond(z, set)}, &at));
        if (most > z->floor)
            z->from[z->nfrom++] = (Origin){most - z->open[set], set};
    }
}

static int by_most(const void *x, const void *y)
{
    const Origin *a = x, *b = y;
    if (a->most != b->most)
        return a->most > b->most ? -1 : 1;
    return a->set < b->set ? -1 : a->set > b->set;
}

/* Finds the front of set j. */
static void enter(Solve *z, uint32_t j)
{
    const LsRelax *r = z->x->relax;
    double loose = z->open[j] + z->edge_loose[j];
    z->nwork = 0;
    for (uint32_t k = 0; k < z->nfrom && z->from[k].most + loose > z->floor; k++)
        step(z, z->from[k].set, j);
    for (uint32_t q = r->fiber.at[r->of[j]]; r->fiber.id[q] != j; q++)
        if (z->front[r->fiber.id[q]].n > 0)
            step(z, r->fiber.id[q], j);
    Front *f = &z->front[j];
    *f = (Front){ls_arena_alloc(z->arena, z->nwork, sizeof *f->state), z->nwork};
    if (z->nwork > 0)
        memcpy(f->state, z->work, z->nwork * sizeof *f->state);
    z->nstate += z->nwork;
}

/* Finds all states above the floor. */
static LsExactEnd search(Solve *z)
{
    enum { MOST_STATES = 4000000 };
    const LsRelax *r = z->x->relax;
    z->front[0] = (Front){ls_arena_alloc(z->arena, 1, sizeof(State)), 1};
    for (uint32_t p = 0; p < r->n; p++) {
        z->nfrom = 0;
        for (uint32_t i = 0; z->ceiling->n[p] > 0 && i < p; i++)
            add_from(z, i, p);
        qsort(z->from, z->nfrom, sizeof *z->from, by_most);
        for (uint32_t q = r->fiber.at[p]; q < r->fiber.at[p + 1]; q++)
            if (r->fiber.id[q] != 0)
                enter(z, r->fiber.id[q]);
        envelop(z, p);
        if (z->nlook > z->most_looks || z->nstate > MOST_STATES)
            return LS_EXACT_UNKNOWN;
    }
    return z->front[z->x->fam->n - 1].n > 0 ? LS_EXACT_FOUND : LS_EXACT_NONE;
}

/* ---- solve ---- */

static double *by_set(const Solve *z)
{
    return ls_arena_alloc(z->arena, z->x->fam->n, sizeof(double));
}

static void weigh(Solve *z)
{
    const LsForward *f = z->x->f;
    const LsFamily *fam = z->x->fam;
    z->stuck = by_set(z);
    z->open = by_set(z);
    z->edge_loose = by_set(z);
    z->sum = by_set(z);
    for (uint32_t i = 0; i < fam->n; i++) {
        for (uint32_t v = 0; v < f->n; v++)
            if (!ls_bit(fam->low + (size_t)i * f->nword, v)) {
                z->open[i] += z->ceiling->loose[v];
            } else {
                z->sum[i] += z->gain[v];
                z->stuck[i] += ls_bit(f->stuck, v) ? z->gain[v] : 0;
                z->edge_loose[i] += ls_bit(f->stuck, v) ? z->ceiling->loose[v] : 0;
            }
        for (uint32_t k = z->x->edge_at[i]; k < z->x->edge_at[i + 1]; k++)
            z->edge_loose[i] += z->ceiling->loose[z->x->edge[k]];
    }
    if (!z->price_last)
        z->edge_loose[fam->n - 1] = z->open[0];
}

/* sign: 1: kept vertices gain, -1: they lose, 0: only feasibility counts. */
static Solve *solve_new(LsArena *arena, const LsExact *x, const LsDpOptions *o, double sign)
{
    Solve *z = ls_arena_alloc(arena, 1, sizeof *z);
    *z = (Solve){.x = x, .arena = arena, .budget = o->budget, .price_last = o->price_last,
                 .most_looks = o->most_looks ? o->most_looks : MOST_LOOKS};
    uint64_t points = z->most_looks / LOOKS_A_POINT;        /* each point is examined from many
                                                             * sets */
    z->gain = ls_arena_alloc(arena, x->f->n, sizeof *z->gain);
    for (uint32_t v = 0; v < x->f->n; v++)
        z->gain[v] = sign * (o->unit > 0 ? o->unit * round(x->f->time[v] / o->unit)
                                         : x->f->time[v]);
    z->ceiling = ls_ceiling_new(arena, x->relax, o->budget, z->gain,
                                o->price_last ? NULL : z->gain,
                                points < MOST_POINTS ? (uint32_t)points : MOST_POINTS);
    if (z->ceiling != NULL)
        weigh(z);
    z->front = ls_arena_alloc(arena, x->fam->n, sizeof *z->front);
    z->env = ls_arena_alloc(arena, x->relax->n, sizeof *z->env);
    z->from = ls_arena_alloc(arena, x->fam->n, sizeof *z->from);
    return z;
}

static void trace(const Solve *z, LsArena *arena, LsStrategy *out)
{
    const LsFamily *fam = z->x->fam;
    *out = (LsStrategy){0};
    for (int pass = 0; pass < 2; pass++) {
        uint32_t set = fam->n - 1, at = z->front[set].n - 1, left = out->ncut;
        while (set != 0) {
            if (pass == 0)
                out->ncut++;
            else
                out->cut[--left] = fam->low + (size_t)set * fam->nword;
            const State *s = &z->front[set].state[at];
            set = s->set;
            at = s->at;
        }
        if (pass == 0)
            out->cut = ls_arena_alloc(arena, out->ncut + 1u, sizeof *out->cut);
    }
    ls_strategy_price(z->arena, z->x->f, z->price_last, out);
}

/* Returns whether any strategy is within the budget. */
static LsExactEnd feasible(const LsExact *x, const LsDpOptions *o)
{
    LsArena *arena = ls_arena_new();
    Solve *z = solve_new(arena, x, o, 0);
    z->floor = -1;
    LsExactEnd end = z->ceiling == NULL ? LS_EXACT_UNKNOWN
                     : z->ceiling->n[0] == 0 ? LS_EXACT_NONE : search(z);
    ls_arena_free(arena);
    return end;
}

LsExactEnd ls_exact_solve(LsArena *arena, const LsExact *x, const LsDpOptions *o, LsStrategy *out)
{
    /* as fractions of the time of everything */
    static const double under[] = {1e-9, 1e-3, 4e-3, 0.016, 0.064, 0.25, INFINITY};
    enum { SURE = 4 };          /* from this floor on, check feasibility first */
    LsArena *scratch = ls_arena_new();
    Solve *z = solve_new(scratch, x, o, o->greatest ? -1 : 1);
    double all = x->fam->time[x->fam->n - 1];
    LsExactEnd end = z->ceiling == NULL ? LS_EXACT_UNKNOWN : LS_EXACT_NONE;
    bool none = x->fam->n < 2 || z->ceiling == NULL || z->ceiling->n[0] == 0;
    for (size_t k = 0; !none && end == LS_EXACT_NONE && k < sizeof under / sizeof *under; k++) {
        if (k == SURE && (end = feasible(x, o)) != LS_EXACT_FOUND)
            break;
        z->floor = z->open[0] + ls_ceiling_at(z->ceiling, 0, 0)
                   - (under[k] < INFINITY ? under[k] * all : INFINITY);
        end = search(z);
    }
    if (end == LS_EXACT_FOUND)
        trace(z, arena, out);
    ls_arena_free(scratch);
    return end;
}
