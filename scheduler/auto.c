/* scheduler/auto.c -- the best of all strategies, repaired and improved by simulated annealing for
 * a ladder of targets.
 *
 * The targets do not depend on the budget, so plans stay monotone. Downwards, each begins with
 * what the target above ended with, or with a candidate of the pool that comes near; below the
 * last one that was reached the peak is squeezed on. Upwards, each begins with the best that is
 * known by now. Everything seen on the way that no other sequence beats is kept. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/front.h"
#include "scheduler/joint.h"
#include "scheduler/moves.h"
#include "scheduler/strategy.h"
#include "scheduler/targets.h"
#include "scheduler/turn.h"

typedef struct Extra { double cost; uint32_t run, node; } Extra;

typedef struct Search {
    LsCandidates *pool;
    LsProb *p;
    LsTape *t;
    LsMoves *m;
    LsFront front;
    int64_t *rung; uint32_t nrung;          /* targets, falling */
    uint32_t moves;             /* of the search at one target */
    uint32_t starts;            /* random ones, at one target */
    double weight;              /* cost that a byte above the target counts for */
    double hot;                 /* rise of cost that is often taken at first */
    uint64_t since;             /* moves since the limit was looked at */
    LsLimit *limit;
    bool turns;                 /* the graph has a backward part */
    bool cut;
} Search;

static bool out_of_time(Search *s)
{
    enum { OFTEN = 64 };
    if (!s->cut && ++s->since % OFTEN == 0)
        s->cut = ls_moves_out_of_time(s->m, s->limit);
    return s->cut;
}

static double energy(const Search *s) { return ls_moves_energy(s->m, s->weight); }

/* Brings the tape to the target by what costs least per byte; false if that fails. */
static bool repair(Search *s)
{
    enum { MANY = 300, PATIENCE = 12 };
    uint32_t most = s->p->n + 100, failures = 0, tries = 2 * s->p->n + 16;
    tries = tries < MANY ? tries : MANY;
    for (uint32_t k = 0; k < most && failures < PATIENCE && !out_of_time(s); k++) {
        uint32_t mark = s->t->nchange;
        if (ls_tape_peak(s->t) <= s->m->target)
            return true;
        if (s->t->n > 4 * s->p->n + 64)
            return false;
        if (!ls_move_relieve(s->m, tries) || s->t->bad > 0) {
            ls_tape_undo(s->t, mark);
            failures++;
        }
    }
    return ls_tape_peak(s->t) <= s->m->target;
}

static int by_cost(const void *x, const void *y)
{
    const Extra *a = x, *b = y;
    return a->cost > b->cost ? -1 : a->cost < b->cost ? 1 : a->run < b->run ? -1 : a->run > b->run;
}

/* Takes back all recomputations that the target does not ask for, the dearest first. */
static void take_back(Search *s)
{
    LsTape *t = s->t;
    LsArena *arena = ls_arena_new();
    Extra *extra = ls_arena_alloc(arena, t->n + 1u, sizeof *extra);
    uint32_t n = 0;
    for (uint32_t r = t->run[LS_TAPE_END].next; r != LS_TAPE_END; r = t->run[r].next)
        if (ls_moves_can_drop(s->m, r))
            extra[n++] = (Extra){s->p->cost[t->run[r].node], r, t->run[r].node};
    qsort(extra, n, sizeof *extra, by_cost);
    for (uint32_t k = 0; k < n && !out_of_time(s); k++) {
        uint32_t mark = t->nchange;
        if (t->run[extra[k].run].node == extra[k].node
            && (!ls_move_drop(s->m, extra[k].run) || t->bad > 0
                || ls_tape_peak(t) > s->m->target))
            ls_tape_undo(t, mark);
    }
    ls_arena_free(arena);
}

/* Takes back a recomputation, and makes room for what that holds in other places. */
static bool drop_and_relieve(Search *s)
{
    enum { MOST = 6, TRIES = 24 };
    uint32_t run = ls_moves_extra(s->m);
    if (run == LS_TAPE_END || !ls_move_drop(s->m, run))
        return false;
    for (int k = 0; k < MOST && ls_tape_peak(s->t) > s->m->target; k++)
        if (!ls_move_relieve(s->m, TRIES))
            return true;
    return true;
}

/* Makes room at the peak, and takes back what that allows. */
static bool relieve_and_drop(Search *s)
{
    enum { MOST = 3, TRIES = 3 };
    if (!ls_move_relieve(s->m, TRIES))
        return false;
    for (int k = 0; k < MOST; k++) {
        uint32_t run = ls_moves_extra(s->m), mark = s->t->nchange;
        if (run != LS_TAPE_END
            && (!ls_move_drop(s->m, run) || ls_tape_peak(s->t) > s->m->target))
            ls_tape_undo(s->t, mark);
    }
    return true;
}

static bool change(Search *s)
{
    uint32_t kind = ls_moves_random(s->m, 16);
    if (s->m->swaps && kind < 3)
        return kind == 0 ? ls_move_forgo(s->m) : ls_move_swap(s->m);
    if (kind < 9 && ls_tape_peak(s->t) > s->m->target)
        return ls_move_relieve(s->m, 4);
    if (kind < 7)
        return drop_and_relieve(s);
    if (kind < 9)
        return relieve_and_drop(s);
    return ls_move_shift(s->m);
}

/* The tighter the target, the more runs again, and the more moves to put them right. */
static void anneal(Search *s)
{
    enum { MOST = 8 };
    double tight = (double)s->rung[0] / (double)s->m->target;
    uint32_t moves = (uint32_t)(s->moves * (tight < MOST ? tight : MOST) / 2);
    s->t->nchange = 0;
    double now = energy(s);
    for (uint32_t k = 0; k < moves && !out_of_time(s); k++) {
        double part = 1 - (double)k / moves, heat = s->hot * part * part * part;
        bool made = change(s) && s->t->bad == 0;
        double then = made ? energy(s) : 0;
        double rise = ls_moves_rise(s->m, heat);
        if (!made || then - now > rise) {
            ls_tape_undo(s->t, 0);
            continue;
        }
        s->t->nchange = 0;
        now = then;
        ls_front_offer(&s->front, s->t);
    }
}

static void load(Search *s, const LsSeq *seq, int64_t target)
{
    s->m->target = target;
    ls_tape_load(s->t, seq);
}

/* Repairs seq for the target, where `jointly` by joint relief first; the result goes to the
 * front. */
static void attempt(Search *s, const LsSeq *seq, int64_t target, bool jointly)
{
    load(s, seq, target);
    if (jointly && !s->cut)
        s->cut = !ls_moves_make_room(s->m, s->weight, s->hot, s->limit);
    if (repair(s)) {
        take_back(s);
        ls_moves_swap_cheaper(s->m);
    }
    s->t->nchange = 0;
    ls_front_offer(&s->front, s->t);
}

/* In large graphs that no turn from forward to backward tells what to keep in. */
static bool relieves_jointly(const Search *s)
{
    enum { LEAST = 400, MOST = 3000 };
    return s->p->n >= LEAST && s->p->n <= MOST && !s->turns;
}

/* From the order of the least peak, and from what nearly reaches the target. */
static void attempt_jointly(Search *s, int64_t target)
{
    const LsCand *c = s->pool->cand, *order = c;
    if (!relieves_jointly(s))
        return;
    for (uint32_t k = 1; k < s->pool->n && c[k].cost <= c[0].cost * (1 + 1e-9); k++)
        order = c[k].peak < order->peak ? &c[k] : order;
    attempt(s, &order->seq, target, true);
    const LsFrontItem *near = ls_front_best(&s->front, (int64_t)((double)target * 1.06));
    if (near != NULL && near->peak > target)
        attempt(s, &near->seq, target, true);
}

/* Searches at the target from the best that can be had; whether it was reached. */
static bool descend(Search *s, int64_t target)
{
    static const double near[] = {1, 1.02, 1.04, 1.07, 1.1, 1.14, 1.2, 1.3, 1.5, 2};
    const LsCand *last = NULL;
    for (size_t j = 0; j < sizeof near / sizeof *near; j++) {
        int64_t peak = (int64_t)((double)target * near[j]);
        const LsCand *c = ls_candidates_within(s->pool, peak);
        if (c != NULL && c != last)
            attempt(s, &c->seq, target, false);
        last = c;
    }
    for (uint32_t k = 0; k < s->starts; k++) {
        uint32_t pick = ls_moves_random(s->m, s->pool->n + s->front.n);
        const LsSeq *seq = pick < s->pool->n ? &s->pool->cand[pick].seq
                                             : &s->front.item[pick - s->pool->n].seq;
        attempt(s, seq, target, false);
    }
    attempt_jointly(s, target);
    const LsFrontItem *best = ls_front_best(&s->front, target);
    if (best == NULL && s->front.n > 0)
        best = ls_front_least(&s->front);
    if (best == NULL)
        return false;
    load(s, &best->seq, target);
    repair(s);
    anneal(s);
    return ls_front_best(&s->front, target) != NULL;
}

/* Below the ladder: the least peak, little by little. */
static void squeeze(Search *s)
{
    static const double part[] = {0.98, 0.99, 0.997};
    for (uint32_t k = 0, round = 0; k < sizeof part / sizeof *part && round < 40; round++) {
        const LsFrontItem *least = ls_front_least(&s->front);
        int64_t peak = least->peak;
        int64_t target = (int64_t)((double)peak * part[k]);
        if (relieves_jointly(s)) {
            attempt(s, &least->seq, target, true);
        } else {
            load(s, &least->seq, target);
            repair(s);
        }
        anneal(s);
        if (s->cut)
            return;
        k += ls_front_least(&s->front)->peak >= peak;
    }
}

/* Anneals once more at every target within reach, upwards, each from the best known by now. */
static void ascend(Search *s)
{
    for (uint32_t k = s->nrung; k-- > 0 && !s->cut;) {
        const LsFrontItem *best = ls_front_best(&s->front, s->rung[k]);
        if (best == NULL && (double)ls_front_least(&s->front)->peak * 0.93 < (double)s->rung[k])
            best = ls_front_least(&s->front);
        if (best == NULL)
            continue;
        load(s, &best->seq, s->rung[k]);
        anneal(s);
    }
}

/* Starts over from what costs least, and goes down with what it has: another way than before. */
static void descend_anew(Search *s)
{
    load(s, &s->front.item[0].seq, s->rung[0]);
    for (uint32_t k = 0; k < s->nrung && !s->cut; k++) {
        s->m->target = s->rung[k];
        if ((double)ls_front_least(&s->front)->peak * 0.95 > (double)s->m->target)
            break;
        repair(s);
        anneal(s);
    }
}

static void find_rungs(Search *s, int64_t top, int64_t store_all)
{
    enum { FEW = 400 };                             /* nodes: there is time for many targets */
    LsTargets t = ls_targets(s->pool->arena, top, store_all, s->p->n <= FEW);
    s->rung = ls_arena_alloc(s->pool->arena, t.n + 1u, sizeof *s->rung);
    if (s->m->swaps)                                /* there may be something better than none */
        s->rung[s->nrung++] = top;
    for (uint32_t k = 0; k < t.n; k++)
        s->rung[s->nrung++] = t.bytes[k];
}

static void set_mood(Search *s, double heat, double weight)
{
    s->hot = heat * s->p->base_cost / (s->p->n + 1);
    s->weight = weight * s->p->base_cost / (double)s->pool->cand[0].peak;
}

static void improve(Search *s)
{
    enum { GIVE_UP = 3 };
    /* Rounds of little and of much heat, lenient and strict about the target. */
    static const double mood[][2] = {{1, 3}, {3, 10}, {3, 3}, {1, 10}, {1, 3}, {0.3, 10}};
    uint32_t failures = 0;
    set_mood(s, mood[0][0], mood[0][1]);
    for (uint32_t k = 0; k < s->nrung && failures < GIVE_UP && !s->cut; k++)
        failures = descend(s, s->rung[k]) ? 0 : failures + 1;
    if (s->front.n == 0)
        return;
    squeeze(s);
    for (uint32_t k = 1; k < sizeof mood / sizeof *mood && !s->cut; k++) {
        set_mood(s, mood[k][0], mood[k][1]);
        if (k % 2)
            ascend(s);
        else
            descend_anew(s);
    }
}

/* ---- the least peak ---- */

/* From the sequence down, each time by a part of the peak, until that fails some times. */
static void sink(Search *s, const LsSeq *seq, int64_t peak)
{
    enum { PATIENCE = 3 };
    const double part = 0.95, less = 1 - (1 - part) / 3;
    int64_t target = (int64_t)((double)peak * part);
    load(s, seq, target);
    for (int failures = 0; failures < PATIENCE && !s->cut;) {
        s->m->target = target;
        repair(s);
        anneal(s);
        bool reached = s->front.n > 0 && ls_front_least(&s->front)->peak <= target;
        failures = reached ? 0 : failures + 1;
        if (reached)
            target = (int64_t)((double)target * part);
        else if (failures == PATIENCE - 1 && s->front.n > 0)
            target = (int64_t)((double)ls_front_least(&s->front)->peak * less);
    }
}

/* The candidate of the least peak among a few random ones. */
static const LsCand *one_of_least(Search *s)
{
    enum { TRIES = 4 };
    const LsCandidates *pool = s->pool;
    const LsCand *least = &pool->cand[ls_moves_random(s->m, pool->n)];
    for (int k = 1; k < TRIES; k++) {
        const LsCand *c = &pool->cand[ls_moves_random(s->m, pool->n)];
        least = c->peak < least->peak ? c : least;
    }
    return least;
}

/* Sinks from one of the least, of the pool or of what was found: little at first, then more. */
static void sink_from_many(Search *s)
{
    enum { ROUNDS = 1000, EVERY = 6, MOST = 1 << 20, OFTEN = 4 };
    for (uint32_t round = 0; round < ROUNDS && !s->cut; round++) {
        uint32_t pick = ls_moves_random(s->m, s->front.n > 0 ? OFTEN : 1);
        if (pick > 0) {
            const LsFrontItem *least = ls_front_least(&s->front);
            least -= pick <= s->front.n ? pick - 1 : 0;
            sink(s, &least->seq, least->peak);
        } else {
            const LsCand *c = round > 0 ? one_of_least(s) : ls_candidates_least(s->pool);
            sink(s, &c->seq, c->peak);
        }
        if (round % EVERY == EVERY - 1 && s->moves < MOST)
            s->moves += s->moves / 2;
    }
}

/* Makes what was found cheaper, from the least up. */
static void settle(Search *s)
{
    static const double above[] = {1, 1.03, 1.07, 1.12};
    if (s->front.n == 0)
        return;
    int64_t least = ls_front_least(&s->front)->peak;
    for (size_t k = 0; k < sizeof above / sizeof *above && !s->cut; k++) {
        int64_t target = (int64_t)((double)least * above[k]);
        load(s, &ls_front_best(&s->front, target)->seq, target);
        take_back(s);
        anneal(s);
    }
}

/* ---- */

static Search open_search(LsCandidates *pool, int64_t store_all, LsLimit *limit, LsArena *arena)
{
    LsProb *p = pool->prob;
    Search s = {.pool = pool, .p = p, .limit = limit, .t = ls_tape_new(p)};
    s.m = ls_moves_new(arena, s.t);
    s.turns = ls_turn_mark(p, ls_arena_alloc(arena, p->n, sizeof(bool)));
    int64_t top = pool->cand[0].peak;               /* the first costs the least */
    find_rungs(&s, top, store_all);
    double many = p->n > 2000 ? 2000.0 / p->n : p->n < 60 ? p->n / 60.0 : 1;
    s.moves = (uint32_t)(limit->effort * 10 * many);
    s.starts = 2000 / (p->n + 200);
    return s;
}

static bool close_search(Search *s, LsArena *arena)
{
    for (uint32_t k = 0; k < s->front.n; k++)
        ls_candidates_offer(s->pool, &s->front.item[k].seq, "auto");
    ls_front_free(&s->front);
    ls_tape_free(s->t);
    ls_arena_free(arena);
    return s->cut;
}

bool ls_strategy_auto(LsCandidates *pool, int64_t store_all, LsLimit *limit)
{
    if (pool->n == 0 || pool->cand[0].peak == 0)
        return false;
    LsArena *arena = ls_arena_new();
    Search s = open_search(pool, store_all, limit, arena);
    improve(&s);
    return close_search(&s, arena);
}

void ls_strategy_least(LsCandidates *pool, int64_t store_all, const LsLimit *limit)
{
    const double most = 0.75;                       /* of the work; the rest is for the cost */
    if (pool->n == 0 || pool->cand[0].peak == 0)
        return;
    LsArena *arena = ls_arena_new();
    LsLimit part = ls_limit_part(limit, limit->effort, most), whole = *limit;
    Search s = open_search(pool, store_all, &part, arena);
    uint32_t usual = s.moves;
    s.moves = usual / 3 + 1;
    set_mood(&s, 10, 200);                          /* bytes are all that counts */
    sink_from_many(&s);
    whole.work = part.work;
    s.limit = &whole;
    s.cut = false;
    s.moves = usual;
    set_mood(&s, 1, 10);
    settle(&s);
    close_search(&s, arena);
}
