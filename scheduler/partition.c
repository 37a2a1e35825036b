/* scheduler/partition.c -- the DP over lower sets of Kusumoto et al. 2019 (arXiv:1905.11722).
 *
 * State: a lower set L, the time t of recomputation decided so far, the bytes m kept so far. The published
 * table has a least m for each whole t; here each set holds the front of states that no other beats in
 * both, so times may be any number. Time-centred, less t is better; memory-centred, more: what a
 * state with more t and less m can still reach, no state it beats can better.
 *
 * A step L -> L' costs by sums over the sets alone, but for the kept vertices of L' outside L:
 *   t += T(L') - T(L) - T(keep(L') - L)       m += M(keep(L') - L)
 *   m + 2 (M(L') - M(L)) + halo(L') <= budget */
#include "scheduler/partition.h"

#include <string.h>

/* t with its sign; set, at: the point it came from. */
typedef struct Point { double t; int64_t m; uint32_t set, at; } Point;
typedef struct Front { Point *point; uint32_t n; int64_t least; } Front;

typedef struct Dp {
    const LsForward *f;
    const LsFamily *fam;
    const LsDpOptions *o;
    LsArena *scratch;
    Front *front;
    Point *work; uint32_t nwork, room;      /* the front being made, by rising t * sign */
    double sign;
    bool thinned;
} Dp;

/* Adds p to the front in work unless a point there is as good in both. t comes with its sign. */
static void add_point(Dp *dp, Point p)
{
    uint32_t lo = 0, hi = dp->nwork;
    while (lo < hi) {                               /* first point with t > p.t */
        uint32_t mid = (lo + hi) / 2;
        if (dp->work[mid].t <= p.t)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo > 0 && dp->work[lo - 1].m <= p.m)
        return;
    uint32_t from = lo, to = lo;
    if (lo > 0 && dp->work[lo - 1].t == p.t)
        from = lo - 1;
    while (to < dp->nwork && dp->work[to].m >= p.m)
        to++;
    if (dp->nwork + 1 > dp->room)
        dp->work = ls_arena_grow(dp->scratch, dp->work, dp->nwork, dp->nwork + 1u,
                                 sizeof *dp->work, &dp->room);
    memmove(dp->work + from + 1, dp->work + to, (dp->nwork - to) * sizeof *dp->work);
    dp->nwork = dp->nwork - (to - from) + 1;
    dp->work[from] = p;
}

/* Keeps about `most` points, evenly by place, both ends included. */
static void thin(Dp *dp)
{
    uint32_t most = dp->o->most_points;
    if (dp->nwork <= most)
        return;
    dp->thinned = true;
    for (uint32_t k = 0; k < most; k++)
        dp->work[k] = dp->work[(uint64_t)k * (dp->nwork - 1) / (most - 1)];
    dp->nwork = most;
}

static bool inside(const uint64_t *a, const uint64_t *b, uint32_t nword)
{
    for (uint32_t w = 0; w < nword; w++)
        if (a[w] & ~b[w])
            return false;
    return true;
}

/* Bytes and time of the vertices of keep outside low. */
static void weigh(const LsForward *f, const uint64_t *keep, const uint64_t *low, int64_t *m, double *t)
{
    for (uint32_t w = 0; w < f->nword; w++)
        for (uint64_t s = keep[w] & ~low[w]; s != 0; s &= s - 1) {
            uint32_t v = 64 * w + (uint32_t)__builtin_ctzll(s);
            *m += f->mem[v];
            *t += f->time[v];
        }
}

/* Every way to reach set j from a smaller one. */
static void relax_into(Dp *dp, uint32_t j)
{
    const LsFamily *fam = dp->fam;
    const uint64_t *low = fam->low + (size_t)j * fam->nword;
    const uint64_t *keep = fam->keep + (size_t)j * fam->nword;
    bool last = j == fam->n - 1;
    for (uint32_t i = 0; i < j; i++) {
        const Front *from = &dp->front[i];
        int64_t here = 2 * (fam->mem[j] - fam->mem[i]) + fam->halo[j];
        const uint64_t *less = fam->low + (size_t)i * fam->nword;
        if (from->n == 0 || from->least + here > dp->o->budget || !inside(less, low, fam->nword))
            continue;
        int64_t m = 0;
        double t = 0;
        weigh(dp->f, keep, less, &m, &t);
        t = last && !dp->o->price_last ? 0 : fam->time[j] - fam->time[i] - t;
        for (uint32_t k = 0; k < from->n; k++)
            if (from->point[k].m + here <= dp->o->budget)
                add_point(dp, (Point){from->point[k].t + dp->sign * t, from->point[k].m + m, i, k});
    }
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
    LsArena *scratch = ls_arena_new();
    Dp dp = {.f = f, .fam = fam, .o = options, .scratch = scratch,
             .sign = options->greatest ? -1 : 1};
    dp.front = ls_arena_alloc(scratch, fam->n, sizeof *dp.front);
    Point start = {0, 0, 0, 0};
    dp.front[0] = (Front){&start, 1, 0};
    for (uint32_t j = 1; j < fam->n; j++) {
        dp.nwork = 0;
        relax_into(&dp, j);
        thin(&dp);
        Front *to = &dp.front[j];
        to->n = dp.nwork;
        to->point = ls_arena_alloc(scratch, dp.nwork, sizeof *to->point);
        memcpy(to->point, dp.work, dp.nwork * sizeof *to->point);
        to->least = dp.nwork ? dp.work[dp.nwork - 1].m : 0;     /* m falls along the front */
    }
    const Front *end = &dp.front[fam->n - 1];
    LsStrategies out = {ls_arena_alloc(arena, end->n + 1u, sizeof *out.item), 0, dp.thinned};
    if (fam->n > 1)
        for (uint32_t k = 0; k < end->n; k++)
            out.item[out.n++] = trace(&dp, arena, k);
    ls_arena_free(scratch);
    return out;
}

void ls_strategy_price(const LsForward *f, bool price_last, LsStrategy *s)
{
    LsArena *scratch = ls_arena_new();
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
    ls_arena_free(scratch);
}
