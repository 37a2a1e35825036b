/* scheduler/lower_sets/partition_dp.c -- the DP over lower sets of Kusumoto et al. 2019
 * (arXiv:1905.11722), for many strategies at once.
 *
 * State: a lower set L, the time t of recomputation decided so far, the bytes m kept so far. The
 * published table has a place for every time; here every cell of a grid holds the state of least m
 * and its exact t. A second array holds the least m of all better times, so one look decides
 * dominance. Less t is better time-centred, more t memory-centred: a dominated state can reach
 * nothing better.
 *
 * The cost of a step L -> L' follows from sums over the sets, except for the kept vertices of L'
 * outside L:
 *   t += T(L') - T(L) - T(keep(L') - L)       m += M(keep(L') - L)
 *   m + 2 (M(L') - M(L)) + halo(L') <= budget
 * The same sums backwards say how many bytes may be kept at L at most if a way to the end is to be
 * left. */
#include "scheduler/lower_sets/partition_dp.h"

#include <string.h>

/* t has its sign; set, at: the previous point. */
typedef struct Point { double t; int64_t m; uint32_t set, at; } Point;
typedef struct Front { Point *point; uint32_t n; int64_t least; } Front;    /* by rising t */

typedef struct Dp {
    const LsForward *f;
    const LsFamily *fam;
    const LsDpOptions *o;
    LsArena *scratch;
    Front *front;
    int64_t *most;              /* by set: with more bytes kept no way leads to the end */
    /* the grid of the current set */
    Point *cell;
    int64_t *least;             /* by cell: the least m in this and earlier cells */
    uint32_t top;               /* last cell that may be used */
    double sign, first, scale;  /* cell = (t - first) * scale */
} Dp;

static uint32_t cell_of(const Dp *dp, double t)
{
    double x = (t - dp->first) * dp->scale;
    return x <= 0 ? 0 : x >= dp->top ? dp->top : (uint32_t)x;
}

static void put(Dp *dp, uint32_t c, Point p)
{
    dp->cell[c] = p;
    for (; c <= dp->top && dp->least[c] > p.m; c++)
        dp->least[c] = p.m;
}

/* Extends every state of step.from by the step to set j. */
static void relax(Dp *dp, uint32_t j, LsCutStep step)
{
    const LsFamily *fam = dp->fam;
    const Front *from = &dp->front[step.from];
    int64_t here = 2 * (fam->mem[j] - fam->mem[step.from]) + fam->halo[j];
    int64_t most = dp->o->budget - here;
    most = dp->most[j] - step.kept < most ? dp->most[j] - step.kept : most;
    bool free = j == fam->n - 1 && !dp->o->price_last;
    double t = free ? 0 : dp->sign * step.time;
    if (from->least > most
        || dp->least[cell_of(dp, from->point[0].t + t)] <= from->least + step.kept)
        return;                                     /* that state dominates all of them */
    uint32_t k = 0;
    while (from->point[k].m > most)                 /* m falls along the front */
        k++;
    for (; k < from->n; k++) {
        Point p = {from->point[k].t + t, from->point[k].m + step.kept, step.from, k};
        uint32_t c = cell_of(dp, p.t);
        if (dp->least[c] > p.m)
            put(dp, c, p);
    }
}

/* Returns whether some state of set i can go on to set j within the budget. */
static bool fits(const Dp *dp, uint32_t i, uint32_t j)
{
    const LsFamily *fam = dp->fam;
    return dp->front[i].n > 0
           && dp->front[i].least + 2 * (fam->mem[j] - fam->mem[i]) + fam->halo[j] <= dp->o->budget;
}

/* Takes the nearest sets first: the tie-break is more and smaller blocks. */
static void relax_into(Dp *dp, uint32_t j)
{
    const LsFamily *fam = dp->fam;
    LsCutStep step;
    if (fam->step != NULL) {
        for (uint32_t k = fam->step_at[j + 1]; k-- > fam->step_at[j];)
            if (fits(dp, fam->step[k].from, j))
                relax(dp, j, fam->step[k]);
        return;
    }
    for (uint32_t i = j; i-- > 0;)
        if (fits(dp, i, j) && ls_cut_step(dp->f, fam, i, j, &step))
            relax(dp, j, step);
}

/* Fills most[]; without a list of steps there is no limit. */
static void find_most(Dp *dp)
{
    const LsFamily *fam = dp->fam;
    dp->most = ls_arena_alloc(dp->scratch, fam->n, sizeof *dp->most);
    for (uint32_t j = 0; j < fam->n; j++)
        dp->most[j] = fam->step == NULL || j == fam->n - 1 ? INT64_MAX : -1;
    for (uint32_t j = fam->n; fam->step != NULL && j-- > 1;)
        for (uint32_t k = fam->step_at[j]; k < fam->step_at[j + 1]; k++) {
            const LsCutStep *s = &fam->step[k];
            int64_t here = dp->o->budget - 2 * (fam->mem[j] - fam->mem[s->from]) - fam->halo[j];
            int64_t after = dp->most[j] - s->kept, *most = &dp->most[s->from];
            here = after < here ? after : here;
            *most = here > *most ? here : *most;
        }
}

/* The front of set j: about most_points of the grid, evenly by place, both ends included. */
static void find_front(Dp *dp, uint32_t j)
{
    Front *to = &dp->front[j];
    uint32_t n = 0, most = dp->o->most_points;
    dp->top = cell_of(dp, dp->sign > 0 ? dp->fam->time[j] : 0);
    for (uint32_t c = 0; c <= dp->top; c++)
        dp->least[c] = INT64_MAX;
    if (dp->most[j] >= 0)
        relax_into(dp, j);
    for (uint32_t c = 0; c <= dp->top; c++)         /* states that no better time dominates */
        if (dp->least[c] < INT64_MAX && (c == 0 || dp->least[c] < dp->least[c - 1]))
            dp->cell[n++] = dp->cell[c];
    to->n = n < most ? n : most;
    to->point = ls_arena_alloc(dp->scratch, to->n, sizeof *to->point);
    for (uint32_t k = 0; k < to->n; k++)
        to->point[k] = dp->cell[n <= most ? k : (uint64_t)k * (n - 1) / (most - 1)];
    to->least = n > 0 ? to->point[to->n - 1].m : 0;
}

static LsStrategy trace(const Dp *dp, LsArena *arena, uint32_t k)
{
    const LsFamily *fam = dp->fam;
    LsStrategy s = {.time = dp->sign * dp->front[fam->n - 1].point[k].t};
    for (int pass = 0; pass < 2; pass++) {
        uint32_t set = fam->n - 1, at = k, left = s.ncut;
        while (set != 0) {
            if (pass == 0)
                s.ncut++;
            else
                s.cut[--left] = fam->low + (size_t)set * fam->nword;
            const Point *p = &dp->front[set].point[at];
            set = p->set;
            at = p->at;
        }
        if (pass == 0)
            s.cut = ls_arena_alloc(arena, s.ncut + 1u, sizeof *s.cut);
    }
    return s;
}

LsStrategies ls_partition(LsArena *arena, const LsForward *f, const LsFamily *fam,
                          const LsDpOptions *options)
{
    double all = fam->time[fam->n - 1];
    Dp dp = {.f = f, .fam = fam, .o = options, .scratch = arena, .top = options->cells,
             .sign = options->greatest ? -1 : 1, .first = options->greatest ? -all : 0,
             .scale = all > 0 ? options->cells / all : 0};
    dp.front = ls_arena_alloc(arena, fam->n, sizeof *dp.front);
    dp.cell = ls_arena_alloc(arena, options->cells + 1u, sizeof *dp.cell);
    dp.least = ls_arena_alloc(arena, options->cells + 1u, sizeof *dp.least);
    Point start = {0, 0, 0, 0};
    dp.front[0] = (Front){&start, 1, 0};
    find_most(&dp);
    for (uint32_t j = 1; j < fam->n; j++) {
        dp.top = options->cells;
        find_front(&dp, j);
    }
    const Front *end = &dp.front[fam->n - 1];
    LsStrategies out = {ls_arena_alloc(arena, end->n + 1u, sizeof *out.item), 0};
    if (fam->n > 1)
        for (uint32_t k = 0; k < end->n; k++)
            out.item[out.n++] = trace(&dp, arena, k);
    return out;
}

/* Adds the bytes and time of the vertices of set a outside b. */
static void weigh(const LsForward *f, const uint64_t *a, const uint64_t *b, int64_t *m, double *t)
{
    for (uint32_t v = 0; v < f->n; v++)
        if (ls_bit(a, v) && !ls_bit(b, v)) {
            *m += f->mem[v];
            *t += f->time[v];
        }
}

void ls_strategy_price(LsArena *scratch, const LsForward *f, bool price_last, LsStrategy *s)
{
    uint64_t *none = ls_arena_alloc(scratch, f->nword, sizeof *none);
    uint64_t *keep = ls_arena_alloc(scratch, f->nword, sizeof *keep);
    uint64_t *work = ls_arena_alloc(scratch, 2 * f->nword, sizeof *work);
    int64_t kept = 0;
    s->peak = 0;
    s->time = 0;
    for (uint32_t i = 0; i < s->ncut; i++) {
        const uint64_t *less = i ? s->cut[i - 1] : none;
        int64_t block = 0, edge = 0, halo = ls_cut_edge(f, s->cut[i], keep, work);
        double time = 0, saved = 0;
        weigh(f, s->cut[i], less, &block, &time);
        weigh(f, keep, less, &edge, &saved);
        if (s->peak < kept + 2 * block + halo)
            s->peak = kept + 2 * block + halo;
        kept += edge;
        s->time += i + 1 < s->ncut || price_last ? time - saved : 0;
    }
}
