/* scheduler/order/moves_reorder.c -- moves that change the order of runs, alone or in groups. */
#include "scheduler/order/moves_reorder.h"

/* Narrows lo .. hi to the slots that event k of tensor x allows: a read stays between the nearest
 * writes, a write between the nearest events. */
static void narrow(const LsTape *t, uint32_t x, uint32_t k, bool read, uint32_t *lo, uint32_t *hi)
{
    uint32_t a = k, b = k + 1, n = t->list[x].n;
    while (read && a > 0 && !ls_tape_event_writes(t, x, a - 1))
        a--;
    while (read && b < n && !ls_tape_event_writes(t, x, b))
        b++;
    if (a > 0 && t->slot[ls_tape_event_run(t, x, a - 1)] + 1 > *lo)
        *lo = t->slot[ls_tape_event_run(t, x, a - 1)] + 1;
    if (b < n && t->slot[ls_tape_event_run(t, x, b)] < *hi)
        *hi = t->slot[ls_tape_event_run(t, x, b)];
}

/* Finds the slots lo .. hi - 1 where the run may lie so that all reads keep their instances. */
static void find_window(const LsTape *t, uint32_t run, uint32_t *lo, uint32_t *hi)
{
    const LsRows *rows[] = {&t->reads, &t->writes};
    uint32_t v = t->run[run].node;
    *lo = 0;
    *hi = t->tree.n;
    for (int w = 0; w < 2; w++)
        for (uint32_t k = rows[w]->at[v]; k < rows[w]->at[v + 1]; k++) {
            uint32_t x = rows[w]->id[k];
            narrow(t, x, ls_tape_events_before(t, x, run), w == 0, lo, hi);
        }
}

/* Returns a run that makes, or reads next, a tensor idle at the peak. */
static uint32_t run_about_peak(LsMoves *m)
{
    uint32_t peak = ls_moves_high_run(m), x, next;
    switch (ls_moves_random(m, 4)) {
    case 0:
        return peak;
    case 1:
        return ls_moves_any_run(m, 0);
    default:
        for (int k = 0; k < 8; k++)
            if (ls_moves_find_idle(m, peak, &x, &next))
                return ls_moves_random(m, 2) && next != LS_TAPE_END
                           ? next : ls_tape_maker(m->t, x, peak);
        return LS_TAPE_END;
    }
}

static uint32_t pick_run(LsMoves *m)
{
    return ls_moves_random(m, 2) ? run_about_peak(m) : ls_moves_any_run(m, 0);
}

/* Returns the only reader of the run's results if its own results are not read, or LS_TAPE_END.
 * Such a pair is a weight gradient and its update; neither can move far alone. */
static uint32_t follower(const LsTape *t, uint32_t run)
{
    const LsProb *p = t->p;
    uint32_t only = LS_TAPE_END, reader[2], v = t->run[run].node;
    for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++) {
        uint32_t n = ls_moves_readers(t, run, p->out.id[k], 1, reader);
        if (n > 1 || (n == 1 && only != LS_TAPE_END && only != reader[0]))
            return LS_TAPE_END;
        only = n == 1 ? reader[0] : only;
    }
    uint32_t w = only != LS_TAPE_END ? t->run[only].node : v;
    for (uint32_t k = p->out.at[w]; only != LS_TAPE_END && k < p->out.at[w + 1]; k++)
        if (!t->guard[p->out.id[k]] && ls_moves_readers(t, only, p->out.id[k], 0, reader) > 0)
            return LS_TAPE_END;
    return only;
}

/* Returns a slot from lo to hi, preferring both ends and the place just beyond the peak. */
static uint32_t pick_slot(LsMoves *m, uint32_t run, uint32_t lo, uint32_t hi)
{
    const LsTape *t = m->t;
    uint32_t slot = lo + ls_moves_random(m, hi - lo), peak = t->slot[ls_tape_peak_run(t)];
    switch (ls_moves_random(m, 4)) {
    case 0:
        return lo;
    case 1:
        return hi;
    case 2:                                         /* just beyond the peak as seen from the run */
        if (peak >= lo && peak < hi)
            return t->slot[run] < peak ? peak + 1 : peak;
        return slot;
    default:
        return slot;
    }
}

bool ls_move_shift(LsMoves *m)
{
    LsTape *t = m->t;
    uint32_t run = pick_run(m);
    uint32_t lo, hi, first;
    if (run == LS_TAPE_END)
        return false;
    uint32_t last = follower(t, run), node = t->run[run].node, with = LS_NO_ID;
    if (last != LS_TAPE_END && ls_moves_random(m, 4) != 0)
        last = LS_TAPE_END;
    find_window(t, run, &lo, &hi);
    if (last != LS_TAPE_END)
        find_window(t, last, &first, &hi);
    if (lo >= hi)
        return false;
    uint32_t before = ls_tape_run_from(t, pick_slot(m, run, lo, hi));
    if (before == run || before == last || before == t->run[run].next)
        return false;
    if (last != LS_TAPE_END) {
        with = t->run[last].node;
        ls_tape_remove(t, last);
    }
    ls_tape_remove(t, run);
    ls_tape_insert(t, node, before);
    if (with != LS_NO_ID)
        ls_tape_insert(t, with, before);
    return true;
}

bool ls_move_jump(LsMoves *m)
{
    LsTape *t = m->t;
    uint32_t run = ls_moves_any_run(m, 0), before = ls_moves_any_run(m, 0);
    if (run == LS_TAPE_END || before == run || before == t->run[run].next)
        return false;
    uint32_t node = t->run[run].node;
    ls_tape_remove(t, run);
    ls_tape_insert(t, node, before);
    return true;
}

enum { MOST_TOGETHER = 12 };

static bool is_among(const uint32_t *run, uint32_t n, uint32_t r)
{
    while (n > 0 && run[n - 1] != r)
        n--;
    return n > 0;
}

static bool reads_any(const LsMoves *m, uint32_t run, const uint32_t *of, uint32_t n)
{
    uint32_t v = m->t->run[run].node;
    for (uint32_t k = m->p->in.at[v]; k < m->p->in.at[v + 1]; k++)
        if (is_among(of, n, ls_tape_maker(m->t, m->p->in.id[k], run)))
            return true;
    return false;
}

static bool read_by_any(const LsMoves *m, uint32_t run, const uint32_t *by, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (reads_any(m, by[k], &run, 1))
            return true;
    return false;
}

/* The runs of a group in the order found, and the last run passed that stays in place. */
typedef struct Group { uint32_t run[MOST_TOGETHER], n, past; } Group;

/* Goes `steps` runs up or down the tape from g->run[0] and gathers the runs that must move along,
 * up to MOST_TOGETHER. */
static void gather(const LsMoves *m, Group *g, bool up, uint32_t steps)
{
    const LsTape *t = m->t;
    uint32_t found = 1, q = g->run[0];
    while (steps-- > 0 && (q = up ? t->run[q].prev : t->run[q].next) != LS_TAPE_END) {
        bool along = up ? read_by_any(m, q, g->run, found) : reads_any(m, q, g->run, found);
        if (along && found == MOST_TOGETHER)
            break;
        if (along) {
            g->run[found++] = q;
        } else {
            g->past = q;
            g->n = found;                           /* runs found later would pass no run */
        }
    }
}

bool ls_move_together(LsMoves *m, uint32_t far)
{
    LsTape *t = m->t;
    Group g = {.run = {pick_run(m)}};
    if (g.run[0] == LS_TAPE_END)
        return false;
    bool up = ls_moves_random(m, 2);
    gather(m, &g, up, 1 + ls_moves_random(m, 1 + ls_moves_random(m, far)));
    uint32_t before = up ? g.past : t->run[g.past].next, node[MOST_TOGETHER];
    for (uint32_t k = 0; k < g.n; k++) {
        node[k] = t->run[g.run[k]].node;
        ls_tape_remove(t, g.run[k]);
    }
    for (uint32_t k = 0; k < g.n; k++)              /* in tape order */
        ls_tape_insert(t, node[up ? g.n - 1 - k : k], before);
    return g.n > 0;
}
