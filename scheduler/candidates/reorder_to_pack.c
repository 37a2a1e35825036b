/* scheduler/candidates/reorder_to_pack.c -- simulated annealing over the places of runs.
 *
 * The search for plans only keeps the peak within a target, so many steps come near the peak, and
 * any of them may be hard to pack. This annealing lowers the live bytes above a fraction of the
 * peak, summed over the steps. The peak itself stays, so that it is known before whether a
 * candidate may fit a budget. */
#include "scheduler/candidates/reorder_to_pack.h"

#include "scheduler/order/moves.h"

static void walk(LsMoves *m)
{
    enum { MOST = 5000, LONG = 1500 };              /* a move takes longer with more runs */
    const double part = 0.8, heat = 0.003;          /* floor as a fraction of the peak; temperature
                                                     * as a fraction of the sum */
    LsTape *t = m->t;
    uint32_t moves = t->n <= LONG ? MOST : (uint32_t)((uint64_t)MOST * LONG / t->n);
    int64_t peak = ls_tape_peak(t), floor = (int64_t)((double)peak * part);
    double now = (double)ls_peak_tree_over(&t->tree, floor);
    for (uint32_t k = 0; k < moves && now > 0; k++) {
        double hot = now * heat * (1 - (double)k / moves);
        bool made = ls_move_shift(m) && t->bad == 0 && ls_tape_peak(t) == peak;
        double then = made ? (double)ls_peak_tree_over(&t->tree, floor) : 0;
        double rise = ls_moves_rise(m, hot);
        if (!made || then - now > rise) {
            ls_tape_undo(t, 0);
            continue;
        }
        t->nchange = 0;
        now = then;
    }
}

LsSeq ls_offsets_loosen(LsArena *arena, const LsProb *p, const LsSeq *seq, uint32_t turn)
{
    LsArena *tmp = ls_arena_new();
    LsTape *t = ls_tape_new(p);
    LsMoves *m = ls_moves_new(tmp, t);
    m->rnd += turn;
    ls_tape_load(t, seq);
    m->target = ls_tape_peak(t);
    t->nchange = 0;
    walk(m);
    LsSeq out = {ls_arena_alloc(arena, t->n + 1u, sizeof *out.node), t->n};
    ls_tape_store(t, &out);
    ls_tape_free(t);
    ls_arena_free(tmp);
    return out;
}
