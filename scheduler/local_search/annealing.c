/* scheduler/local_search/annealing.c -- see the header. */
#include "scheduler/local_search/annealing.h"

#include <stdlib.h>

typedef struct Extra { double cost; uint32_t run, node; } Extra;

LsAnneal ls_anneal_new(LsArena *arena, const LsProb *p, int64_t top, const LsLimit *limit)
{
    LsAnneal s = {.p = p, .t = ls_tape_new(p), .top = top, .limit = *limit};
    s.m = ls_moves_new(arena, s.t);
    double many = p->n > 2000 ? 2000.0 / p->n : p->n < 60 ? p->n / 60.0 : 1;
    s.moves = (uint32_t)(limit->effort * 10 * many);
    return s;
}

void ls_anneal_free(LsAnneal *s)
{
    ls_front_free(&s->front);
    ls_tape_free(s->t);
}

static bool out_of_time(LsAnneal *s)
{
    enum { OFTEN = 64 };
    if (!s->cut && (++s->since % OFTEN == 0 || ls_moves_worked_long(s->m)))
        s->cut = ls_moves_out_of_time(s->m, &s->limit);
    return s->cut;
}

static double energy(const LsAnneal *s) { return ls_moves_energy(s->m, s->weight); }

bool ls_anneal_repair(LsAnneal *s)
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

void ls_anneal_take_back(LsAnneal *s)
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

/* Lowers the peak, then removes recomputations that the room allows. */
static bool relieve_and_drop(LsAnneal *s)
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

static bool change(LsAnneal *s)
{
    enum { TRIES = 24 };
    uint32_t kind = ls_moves_random(s->m, 16);
    if (s->m->swaps && kind < 3)
        return kind == 0 ? ls_move_forgo(s->m) : ls_move_swap(s->m);
    if (kind < 9 && ls_tape_peak(s->t) > s->m->target)
        return ls_move_relieve(s->m, 4);
    if (kind < 7)
        return ls_move_trade(s->m, TRIES);
    if (kind < 9)
        return relieve_and_drop(s);
    return ls_move_shift(s->m);
}

void ls_anneal_judge(LsAnneal *s, bool made, double rise, double *now)
{
    double then = made && s->t->bad == 0 ? energy(s) : 0;
    if (!made || s->t->bad > 0 || then - *now > rise) {
        ls_tape_undo(s->t, 0);
        return;
    }
    s->t->nchange = 0;
    *now = then;
    ls_front_offer(&s->front, s->t);
}

void ls_anneal_run(LsAnneal *s)
{
    enum { MOST = 8 };
    double tight = (double)s->top / (double)s->m->target;
    uint32_t moves = (uint32_t)(s->moves * (tight < MOST ? tight : MOST) / 2);
    s->t->nchange = 0;
    double now = energy(s);
    for (uint32_t k = 0; k < moves && !out_of_time(s); k++) {
        double part = 1 - (double)k / moves, heat = s->hot * part * part * part;
        bool made = change(s);
        ls_anneal_judge(s, made, ls_moves_rise(s->m, heat), &now);
    }
}

void ls_anneal_mood(LsAnneal *s, double heat, double weight)
{
    s->hot = heat * s->p->base_cost / (s->p->n + 1);
    s->weight = weight * s->p->base_cost / (double)s->top;
}

void ls_anneal_load(LsAnneal *s, const LsSeq *seq, int64_t target)
{
    s->m->target = target;
    ls_tape_load(s->t, seq);
}

void ls_anneal_attempt(LsAnneal *s, const LsSeq *seq, int64_t target)
{
    ls_anneal_load(s, seq, target);
    if (ls_anneal_repair(s)) {
        ls_anneal_take_back(s);
        s->cut |= ls_moves_swap_cheaper(s->m, &s->limit);
    }
    s->t->nchange = 0;
    ls_front_offer(&s->front, s->t);
}

void ls_anneal_offer(const LsAnneal *s, LsCandidates *pool)
{
    for (uint32_t k = 0; k < s->front.n; k++)
        ls_candidates_offer(pool, &s->front.item[k].seq, "auto");
}
