/* scheduler/cuts/stage_search.c -- the chain of lower sets whose slowest stage is the fastest.
 *
 * f(L, k), the bottleneck of the best cut of L into k stages, is the least max(f(L', k - 1), time
 * of L without L') over the lower sets L' inside L. A first cut, of prefixes of the list alone,
 * gives a bottleneck U. No better cut has a stage k that ends outside of [total - (K - k) U, k U],
 * and this leaves few sets of each k.
 *
 * With all lower sets in the family the same recurrence over the least times (cut_costs.h) is the
 * lower bound. Otherwise the bound is the mean, or the slowest nodes. */
#include "scheduler/cuts/stages.h"

#include "scheduler/cuts/coarse_sets.h"
#include "scheduler/cuts/cut_costs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_SETS = 40000 };
static const uint64_t MOST_LOOKS = 400000000;   /* pairs of sets, a few seconds */
static const double ROUNDING = 1e-9;            /* sums of the same times in another order */

typedef struct Level {          /* cuts into k stages, by their last set */
    uint32_t *set, *from, n;    /* from: place in the level before */
    double *best;
} Level;

typedef struct Search {
    LsArena *arena;
    const LsCutCosts *costs;
    const LsFamily *fam;
    uint32_t k;
    LsCutLimits limits[LS_MOST_STAGES];     /* by stage */
    double *time;               /* by set: ns */
    bool groups;                /* parameters are not shared between stages, except those of `loose`
                                 * groups */
    double most;                /* U: longer stages are left out */
    double *crossing;           /* by set: bytes that leave it. If set, the cut is sought with the
                                 * smallest sum of these among those with stages up to `most` */
    uint64_t looks;             /* of one solution */
    bool cut;                   /* some solution ended at its limit */
    Level *level;               /* 0 .. k */
} Search;

static const uint64_t *row(const Search *s, uint32_t set)
{
    return s->fam->low + (size_t)set * s->fam->nword;
}

static void set_times(Search *s)
{
    s->time = ls_arena_alloc(s->arena, s->fam->n + 1u, sizeof *s->time);
    for (uint32_t i = 0; i < s->fam->n; i++)
        s->time[i] = ls_cut_sum(s->costs, row(s, i));
}

/* The sets at which stage number `at` (from 1) may end. */
static void open_level(Search *s, uint32_t at)
{
    Level *l = &s->level[at];
    const uint32_t n = s->fam->n;
    const double all = s->time[n - 1], low = all - (s->k - at) * s->most, high = at * s->most;
    *l = (Level){.n = 0};
    for (int fill = 0; fill < 2; fill++) {
        l->n = 0;
        for (uint32_t i = 0; i < n; i++) {
            const bool end = i == n - 1 || i == 0;
            if (end ? at != (i == 0 ? 0 : s->k)
                    : at == 0 || at == s->k || s->time[i] > high * (1 + ROUNDING)
                          || s->time[i] < low * (1 - ROUNDING))
                continue;
            if (fill)
                l->set[l->n] = i, l->best[l->n] = INFINITY;
            l->n++;
        }
        if (!fill) {
            l->set = ls_arena_alloc(s->arena, l->n + 1u, sizeof *l->set);
            l->from = ls_arena_alloc(s->arena, l->n + 1u, sizeof *l->from);
            l->best = ls_arena_alloc(s->arena, l->n + 1u, sizeof *l->best);
        }
    }
}

/* Writes the vertices between two sets. False if the first is not a part of the second. */
static bool between(const Search *s, uint32_t from, uint32_t to, uint64_t *set)
{
    const uint64_t *a = row(s, from), *b = row(s, to);
    for (uint32_t w = 0; w < s->fam->nword; w++) {
        if (a[w] & ~b[w])
            return false;
        set[w] = b[w] & ~a[w];
    }
    return true;
}

/* Whether the stage shares no parameter with others. A parameter whose readers are so far apart
 * that one stage with all of them would be much longer than the mean may be shared. */
static bool owns_parameters(const Search *s, const uint64_t *set)
{
    static const double MUCH = 1.25;
    for (uint32_t k = 0; s->groups && k < s->costs->ngroup; k++) {
        const LsCutGroup *group = &s->costs->group[k];
        if (group->between <= MUCH * s->costs->total / s->k && !ls_cut_keeps(s->costs, group, set))
            return false;
    }
    return true;
}

/* What the cut is worth that ends with this stage: the larger time or the sum of bytes; INFINITY:
 * none. to: its last set. */
static double extended(const Search *s, uint32_t stage, double before, double ns, uint32_t to,
                       const uint64_t *set)
{
    if (!owns_parameters(s, set))
        return INFINITY;
    const double time = ls_cut_time(s->costs, &s->limits[stage], ns, set);
    if (s->crossing == NULL)
        return fmax(before, time);
    return time <= s->most * (1 + ROUNDING) ? before + s->crossing[to] : INFINITY;
}

static void reach(Search *s, uint32_t at, uint64_t *set)
{
    const Level *from = &s->level[at - 1];
    Level *to = &s->level[at];
    for (uint32_t j = 0; j < to->n; j++)
        for (uint32_t i = 0; i < from->n && s->looks < MOST_LOOKS; i++) {
            const double ns = s->time[to->set[j]] - s->time[from->set[i]];
            s->looks++;
            if (ns > s->most * (1 + ROUNDING) || from->best[i] >= to->best[j]
                || (s->crossing == NULL && ns >= to->best[j]) || from->set[i] >= to->set[j])
                continue;
            if (!between(s, from->set[i], to->set[j], set))
                continue;
            const double value = extended(s, at - 1, from->best[i], ns, to->set[j], set);
            if (value < to->best[j])
                to->best[j] = value, to->from[j] = i;
        }
}

/* Returns the value of the best cut; INFINITY: none. */
static double solve(Search *s)
{
    uint64_t *set = ls_arena_alloc(s->arena, s->fam->nword, sizeof *set);
    s->level = ls_arena_alloc(s->arena, s->k + 1u, sizeof *s->level);
    s->looks = 0;
    for (uint32_t at = 0; at <= s->k; at++) {
        open_level(s, at);
        if (at == 0)
            s->level[0].best[0] = 0;
        else
            reach(s, at, set);
    }
    s->cut |= s->looks >= MOST_LOOKS;
    return s->level[s->k].best[0];
}

/* By vertex: its stage in the cut that `solve` found. */
static void read_cut(const Search *s, uint32_t *stage)
{
    uint32_t j = 0;
    for (uint32_t at = s->k; at > 0; at--) {
        const uint64_t *low = row(s, s->level[at].set[j]);
        for (uint32_t v = 0; v < s->costs->f->n; v++)
            if (ls_bit(low, v))
                stage[v] = at - 1;
        j = s->level[at].from[j];
    }
}

/* The sets of the first 0, 1, ... vertices. */
static LsFamily *prefixes(LsArena *arena, const LsForward *f)
{
    uint64_t *set = ls_arena_alloc(arena, (size_t)(f->n + 1) * f->nword, sizeof *set);
    for (uint32_t v = 0; v < f->n; v++) {
        memcpy(set + (size_t)(v + 1) * f->nword, set + (size_t)v * f->nword,
               f->nword * sizeof *set);
        ls_bit_add(set + (size_t)(v + 1) * f->nword, v);
    }
    return ls_family_of(f, set, f->n + 1);
}

static LsFamily *joined(LsArena *arena, const LsForward *f, const LsFamily *a, const LsFamily *b)
{
    uint64_t *set = ls_arena_alloc(arena, (size_t)(a->n + b->n) * f->nword, sizeof *set);
    memcpy(set, a->low, (size_t)a->n * f->nword * sizeof *set);
    memcpy(set + (size_t)a->n * f->nword, b->low, (size_t)b->n * f->nword * sizeof *set);
    return ls_family_of(f, set, a->n + b->n);
}

/* All lower sets or, if these are too many, prefixes and those that leave light vertices with what
 * they follow: the lightest alone, if so few sets remain. */
static LsFamily *family_of(Search *s)
{
    static const double PARTS[] = {0.0005, 0.002, 0.01, 0.03, 0.1};     /* of the mean stage */
    const LsForward *f = s->costs->f;
    const double mean = s->costs->total / s->k;
    LsFamily *fam = ls_family_all(f, MOST_SETS);
    if (fam != NULL)
        return fam;
    for (size_t k = 0; fam == NULL && k < sizeof PARTS / sizeof *PARTS; k++)
        fam = ls_coarse_sets(s->arena, f, s->costs->time, PARTS[k] * mean, MOST_SETS);
    LsFamily *list = prefixes(s->arena, f);
    return fam != NULL ? joined(s->arena, f, fam, list) : list;
}

/* No stage is shorter than the mean, the slowest vertex, or, of the K + 1 slowest vertices, two in
 * one stage. */
static double simple_bound(LsArena *arena, const Search *s)
{
    const uint32_t n = s->costs->f->n;
    double *slow = ls_arena_alloc(arena, s->k + 2u, sizeof *slow);      /* the slowest, falling */
    for (uint32_t v = 0; v < n; v++) {
        double ns = s->costs->time[v];
        for (uint32_t k = 0; k <= s->k; k++)
            if (ns > slow[k]) {
                const double less = slow[k];
                slow[k] = ns;
                ns = less;
            }
    }
    const double pair = n > s->k ? slow[s->k - 1] + slow[s->k] : 0;
    return fmax(s->costs->total / s->k, fmax(slow[0], pair));
}

static void set_limits(Search *s, const LsStageOptions *o)
{
    for (uint32_t k = 0; k < s->k; k++) {
        LsArena *tmp = ls_arena_new();
        const LsRankOrder order = ls_rank_order(tmp, o->order, k, s->k, o->micros);
        const int64_t margin = o->margin != NULL && o->budget > 0 ? o->margin[k] : 0;
        s->limits[k] = (LsCutLimits){
            o->keep, o->keep == LS_KEEP_EXCEPT_LAST ? (o->micros - 1.0) / o->micros : 1,
            ls_rank_order_slots(&order, LS_PHASE_B),
            o->budget > 0 && o->budget - margin < 1 ? 1 : o->budget - margin};
        if (o->budget <= 0)
            s->limits[k].bytes = 0;
        ls_arena_free(tmp);
    }
}

/* A bound from the same search over the least times, without margins, and with parameters shared at
 * will. */
static double bound_by_search(Search *s, const LsStageOptions *o, double found)
{
    LsStageOptions plain = *o;
    plain.margin = NULL;
    set_limits(s, &plain);
    set_times(s);
    s->groups = false;
    s->crossing = NULL;
    s->most = found;
    const double value = solve(s);
    return !s->cut ? fmin(value, found) : 0;        /* cuts with longer stages were left out */
}

static const char *say(LsArena *arena, const Search *s)
{
    if (s->cut)
        return ls_arena_printf(
            arena, "the search ended at its limit of %" PRIu64 " pairs of lower sets", MOST_LOOKS);
    if (!s->fam->whole)
        return ls_arena_printf(arena, "more than %d lower sets: cuts from %" PRIu32 " of them",
                               (int)MOST_SETS, s->fam->n);
    return NULL;
}

/* The bottleneck of the best cut among prefixes, then among the family's sets. */
static double improve(Search *s, const LsFamily *fam)
{
    s->fam = prefixes(s->arena, s->costs->f);
    set_times(s);
    s->most = INFINITY;
    s->most = solve(s);
    s->fam = fam;
    set_times(s);
    return solve(s);
}

static LsCutModel model_of(const LsStageOptions *o, bool sure)
{
    return (LsCutModel){o->keep != LS_KEEP_NEVER, sure, o->order == LS_ORDER_ZB, o->state};
}

/* Searches all lower sets, or some. Writes the stage by vertex, and to *bound what no cut's
 * bottleneck is below. Returns the bottleneck; INFINITY: no cut keeps the budget. */
static double search(Search *s, const LsStageOptions *o, uint32_t *stage, double *bound)
{
    const LsFamily *fam = family_of(s);
    s->groups = true;
    double found = improve(s, fam);
    if (!isfinite(found)) {
        s->groups = false;
        found = improve(s, fam);
    }
    if (!isfinite(found))
        return found;
    read_cut(s, stage);
    s->most = found;
    s->crossing = ls_arena_alloc(s->arena, fam->n + 1u, sizeof *s->crossing);
    for (uint32_t i = 0; i < fam->n; i++)
        s->crossing[i] = (double)ls_cut_crossing(s->costs, row(s, i));
    if (isfinite(solve(s)))
        read_cut(s, stage);
    const LsCutModel sure = model_of(o, true);
    s->costs = ls_cut_costs(s->arena, s->costs->f, &sure);
    *bound = simple_bound(s->arena, s);
    if (fam->whole && found > *bound * (1 + ROUNDING))
        *bound = fmax(*bound, bound_by_search(s, o, found));
    return found;
}

static bool refuse(const LsStageOptions *o, uint32_t n, char *why, size_t room)
{
    if (o->stages <= n && o->stages >= 1 && o->stages <= LS_MOST_STAGES)
        return false;
    snprintf(why, room,
             o->stages > n ? "%" PRIu32 " stages are too many: the forward part has %" PRIu32
                             " kernel%s"
                           : "%" PRIu32 " stages are too many: a pipeline has from 1 to 64",
             o->stages, n, n == 1 ? "" : "s");
    return true;
}

bool ls_stages_find(LsArena *arena, const LsProb *p, const LsStageOptions *o, LsStages *out,
                    char *why, size_t room)
{
    LsArena *tmp = ls_arena_new();
    const LsForward *f = ls_forward_new(tmp, p);
    bool ok = !refuse(o, f->n, why, room);
    if (ok) {
        const LsCutModel likely = model_of(o, false);
        Search s = {.arena = tmp, .costs = ls_cut_costs(tmp, f, &likely), .k = o->stages};
        uint32_t *stage = ls_arena_alloc(tmp, f->n, sizeof *stage);
        double bound;
        set_limits(&s, o);
        const double estimate = search(&s, o, stage, &bound);
        ok = isfinite(estimate);
        if (ok) {
            *out = (LsStages){.k = o->stages,
                              .estimate = estimate,
                              .bound = bound,
                              .note = say(arena, &s),
                              .stage = ls_arena_alloc(arena, p->n + 1u, sizeof *out->stage)};
            for (uint32_t v = 0; v < f->n; v++)
                out->stage[f->node[v]] = stage[v];
            ls_stages_complete(arena, p, out);
        } else {
            snprintf(why, room, "no cut into %" PRIu32 " stages keeps the budget of a rank",
                     o->stages);
        }
    }
    ls_arena_free(tmp);
    return ok;
}
