/* scheduler/partition.c -- the DP over lower sets of Kusumoto et al. 2019 (arXiv:1905.11722).
 *
 * State: a lower set L, the time t of recomputation decided so far, the bytes m kept so far. The
 * published table has a least m for each whole t; here each set holds the front of states that
 * no other beats in both, so times may be any number. Time-centred, less t is better;
 * memory-centred, more: what a state with more t and less m can still reach, no state it beats
 * can better.
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
    Point *work; uint32_t nwork, room;      /* the front being made, by rising t */
    Point *other;               /* what a merge writes to */
    Point *add; uint32_t add_room;
    double sign;
    bool thinned;
} Dp;

/* How many points of the front in work have no more t; the last of them has their least m. */
static uint32_t count_until(const Dp *dp, double t)
{
    uint32_t lo = 0, hi = dp->nwork;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (dp->work[mid].t <= t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Merges n points by rising t into the front in work; of what is no better than another in both,
 * the earlier stays. */
static void merge(Dp *dp, const Point *add, uint32_t n)
{
    if (dp->nwork + n > dp->room) {
        dp->room = 2 * (dp->nwork + n) + 64;
        Point *work = ls_arena_alloc(dp->scratch, dp->room, sizeof *work);
        if (dp->nwork > 0)
            memcpy(work, dp->work, dp->nwork * sizeof *work);
        dp->work = work;
        dp->other = ls_arena_alloc(dp->scratch, dp->room, sizeof *dp->other);
    }
    uint32_t i = 0, k = 0, to = 0;
    while (i < dp->nwork || k < n) {
        bool old = k == n || (i < dp->nwork && (dp->work[i].t < add[k].t
                   || (dp->work[i].t == add[k].t && dp->work[i].m <= add[k].m)));
        const Point *p = old ? &dp->work[i++] : &add[k++];
        if (to == 0 || p->m < dp->other[to - 1].m)
            dp->other[to++] = *p;
    }
    Point *work = dp->work;
    dp->work = dp->other;
    dp->other = work;
    dp->nwork = to;
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

/* Goes on to set j by one step from every state of where it starts. */
static void relax(Dp *dp, uint32_t j, LsCutStep step)
{
    const LsFamily *fam = dp->fam;
    const Front *from = &dp->front[step.from];
    int64_t here = 2 * (fam->mem[j] - fam->mem[step.from]) + fam->halo[j];
    bool free = j == fam->n - 1 && !dp->o->price_last;
    double t = free ? 0 : dp->sign * step.time;
    uint32_t no_worse = count_until(dp, from->point[0].t + t + dp->o->slack);
    if (no_worse > 0 && dp->work[no_worse - 1].m <= from->least + step.kept)
        return;                                     /* beats the best of both, so all */
    if (from->n > dp->add_room) {
        dp->add_room = 2 * from->n;
        dp->add = ls_arena_alloc(dp->scratch, dp->add_room, sizeof *dp->add);
    }
    uint32_t nadd = 0, q = 0;
    for (uint32_t k = 0; k < from->n; k++) {        /* both fronts by rising t */
        Point p = {from->point[k].t + t, from->point[k].m + step.kept, step.from, k};
        while (q < dp->nwork && dp->work[q].t <= p.t + dp->o->slack)
            q++;
        if (from->point[k].m + here <= dp->o->budget && (q == 0 || dp->work[q - 1].m > p.m))
            dp->add[nadd++] = p;
    }
    if (nadd > 0)
        merge(dp, dp->add, nadd);
}

/* Some state of set i can go on to set j within the budget. */
static bool fits(const Dp *dp, uint32_t i, uint32_t j)
{
    const LsFamily *fam = dp->fam;
    return dp->front[i].n > 0
           && dp->front[i].least + 2 * (fam->mem[j] - fam->mem[i]) + fam->halo[j] <= dp->o->budget;
}

static void relax_into(Dp *dp, uint32_t j)
{
    const LsFamily *fam = dp->fam;
    LsCutStep step;
    if (fam->step != NULL) {
        for (uint32_t k = fam->step_at[j]; k < fam->step_at[j + 1]; k++)
            if (fits(dp, fam->step[k].from, j))
                relax(dp, j, fam->step[k]);
        return;
    }
    for (uint32_t i = 0; i < j; i++)
        if (fits(dp, i, j) && ls_cut_step(dp->f, fam, i, j, &step))
            relax(dp, j, step);
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
    Dp dp = {.f = f, .fam = fam, .o = options, .scratch = arena,
             .sign = options->greatest ? -1 : 1, .thinned = options->slack > 0};
    dp.front = ls_arena_alloc(arena, fam->n, sizeof *dp.front);
    Point start = {0, 0, 0, 0};
    dp.front[0] = (Front){&start, 1, 0};
    for (uint32_t j = 1; j < fam->n; j++) {
        dp.nwork = 0;
        relax_into(&dp, j);
        thin(&dp);
        Front *to = &dp.front[j];
        to->n = dp.nwork;
        to->point = ls_arena_alloc(arena, dp.nwork, sizeof *to->point);
        if (dp.nwork == 0)
            continue;
        memcpy(to->point, dp.work, dp.nwork * sizeof *to->point);
        to->least = dp.work[dp.nwork - 1].m;        /* m falls along the front */
    }
    const Front *end = &dp.front[fam->n - 1];
    LsStrategies out = {ls_arena_alloc(arena, end->n + 1u, sizeof *out.item), 0, dp.thinned};
    if (fam->n > 1)
        for (uint32_t k = 0; k < end->n; k++)
            out.item[out.n++] = trace(&dp, arena, k);
    return out;
}

/* Bytes and time of the vertices of set a outside b. */
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
