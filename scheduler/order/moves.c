/* scheduler/order/moves.c -- see the header. */
#include "scheduler/order/moves.h"

bool ls_move_relieve(LsMoves *m, uint32_t tries)
{
    LsTape *t = m->t;
    uint32_t peak = ls_moves_high_run(m), best = LS_NO_ID;
    LsRelief relief = {0};
    int64_t over = 2 * (ls_tape_peak(t) - m->target);
    double least = 1e300;
    for (uint32_t k = 0; k < tries && !(best != LS_NO_ID && ls_moves_worked_long(m)); k++) {
        uint32_t x, next;
        if (!ls_moves_find_idle(m, peak, &x, &next))
            continue;
        int64_t bytes = over <= 0 || m->p->size[x] < over ? m->p->size[x] : over;
        double luck = 0.75 + ls_moves_random(m, 1024) / 2048.0;
        LsRelief way;
        double cost = ls_moves_price_relief(m, x, next, least * (double)bytes / luck, &way);
        if (cost < 0)
            continue;
        least = luck * (cost + 1e-9) / (double)bytes;
        best = x;
        relief = way;
    }
    return best != LS_NO_ID && ls_moves_let_go(m, best, &relief);
}

bool ls_moves_can_drop(const LsMoves *m, uint32_t run)
{
    const LsTape *t = m->t;
    const LsProb *p = t->p;
    uint32_t v = t->run[run].node;
    if (ls_tape_must_stay(t, run) || p->out.at[v] == p->out.at[v + 1])
        return false;
    for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++)
        if (ls_tape_maker(t, p->out.id[k], run) == LS_TAPE_END)     /* no instance would remain */
            return false;
    return true;
}

bool ls_move_drop(LsMoves *m, uint32_t run)
{
    uint32_t n = 0;
    if (!ls_moves_can_drop(m, run))
        return false;
    ls_moves_push_makers(m, &n, run);
    ls_tape_remove(m->t, run);
    ls_moves_sweep(m, n);
    return true;
}

uint32_t ls_moves_extra(LsMoves *m)
{
    for (int k = 0; k < 12; k++) {
        uint32_t run = ls_moves_any_run(m, 0);
        if (run != LS_TAPE_END && ls_moves_can_drop(m, run))
            return run;
    }
    return LS_TAPE_END;
}

bool ls_move_trade(LsMoves *m, uint32_t tries)
{
    enum { MOST = 6 };
    uint32_t run = ls_moves_extra(m);
    if (run == LS_TAPE_END || !ls_move_drop(m, run))
        return false;
    for (int k = 0; k < MOST && ls_tape_peak(m->t) > m->target; k++)
        if (!ls_move_relieve(m, tries))
            return true;
    return true;
}
