/* scheduler/order/moves_recompute.c -- moves that recompute a tensor without knowing whether that
 * pays. */
#include "scheduler/order/moves_recompute.h"

/* Returns the maker of the tensor if it may run again and costs at most `most`, else LS_NO_ID. */
static uint32_t maker_within(const LsMoves *m, uint32_t x, double most)
{
    uint32_t v = m->p->maker[x];
    return v != LS_NO_ID && !m->p->stuck[v] && m->p->cost[v] <= most ? v : LS_NO_ID;
}

bool ls_move_again_for_any(LsMoves *m, double most)
{
    const LsProb *p = m->p;
    uint32_t run = ls_moves_any_run(m, 0);
    if (run == LS_TAPE_END)
        return false;
    uint32_t v = m->t->run[run].node, nin = p->in.at[v + 1] - p->in.at[v];
    if (nin == 0)
        return false;
    uint32_t x = p->in.id[p->in.at[v] + ls_moves_random(m, nin)];
    uint32_t again = maker_within(m, x, most);
    if (again == LS_NO_ID || ls_tape_maker(m->t, x, run) == m->t->run[run].prev)
        return false;
    ls_tape_insert(m->t, again, run);
    return true;
}

bool ls_move_again_for_peak(LsMoves *m, double most)
{
    uint32_t peak = ls_moves_high_run(m), x, next;
    if (!ls_moves_find_idle(m, peak, &x, &next) || next == LS_TAPE_END)
        return false;
    uint32_t again = maker_within(m, x, most);
    if (again != LS_NO_ID)
        ls_tape_insert(m->t, again, next);
    return again != LS_NO_ID;
}

bool ls_move_all_again_for_peak(LsMoves *m, double most)
{
    enum { DEEP = 6 };
    uint32_t peak = ls_moves_high_run(m), x, next;
    int left = DEEP;
    return ls_moves_find_idle(m, peak, &x, &next) && next != LS_TAPE_END
           && maker_within(m, x, most) != LS_NO_ID && ls_moves_make_again(m, x, next, &left);
}
