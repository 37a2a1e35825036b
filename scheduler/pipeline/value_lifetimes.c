/* scheduler/pipeline/value_lifetimes.c -- see the header. */
#include "scheduler/pipeline/value_lifetimes.h"

#include <string.h>

static int64_t turn_of(const LsPipeWindows *w, int phase, uint32_t micro)
{
    return phase == LS_PHASE_LATE ? w->flow->nturn : w->turn[(size_t)phase * w->micros + micro];
}

LsPipeWindows *ls_pipe_windows(LsArena *arena, const LsPipeFlow *flow)
{
    LsPipeWindows *w = ls_arena_alloc(arena, 1, sizeof *w);
    *w = (LsPipeWindows){.arena = arena, .flow = flow};
    for (uint32_t k = 0; k < flow->nturn; k++) {
        w->micros = flow->turn[k].micro + 1 > w->micros ? flow->turn[k].micro + 1 : w->micros;
        w->last = flow->turn[k].phase > w->last ? flow->turn[k].phase : w->last;
    }
    w->turn = ls_pipe_turns(arena, flow, w->micros);
    return w;
}

/* The last turn at which the message of the micro-batch may still be on its way. */
static int64_t message_end(const LsPipeWindows *w, const LsPipeMove *m, uint32_t micro)
{
    int64_t end = turn_of(w, LS_PHASE_LATE, micro) + 1;
    if (m->lag != LS_TO_THE_END && micro + m->lag < w->micros)
        end = turn_of(w, m->until, micro + m->lag) - 1;
    if (ls_move_is_forward(m) && end > turn_of(w, LS_PHASE_B, micro) - 1)
        end = turn_of(w, LS_PHASE_B, micro) - 1;
    return end;
}

/* Of a micro-batch before the last, nothing is needed in the late phase. */
static void set_window(const LsPipeWindows *w, LsPipeKind *k, uint32_t micro,
                       const LsPipeMove *const *sent, uint32_t n)
{
    const bool is_last = micro + 1 == w->micros;
    k->begin[micro] = k->end[micro] = -1;
    if (k->from == LS_PHASE_LATE && !is_last)
        return;
    k->begin[micro] = turn_of(w, k->from, micro);
    k->end[micro] = k->to != LS_PHASE_LATE ? turn_of(w, k->to, micro)
                    : is_last ? turn_of(w, LS_PHASE_LATE, micro) + 1 : turn_of(w, w->last, micro);
    for (uint32_t j = 0; j < n; j++)
        if (sent[j]->read != LS_PHASE_LATE && message_end(w, sent[j], micro) > k->end[micro])
            k->end[micro] = message_end(w, sent[j], micro);
    for (uint8_t phase = k->reach; phase <= LS_PHASE_LATE; phase++)
        if ((phase <= w->last || (phase == LS_PHASE_LATE && is_last))
            && turn_of(w, phase, micro) <= k->end[micro])
            k->reach = phase;
}

uint32_t ls_pipe_kind(LsPipeWindows *w, uint8_t from, uint8_t to, const LsPipeMove *const *sent,
                      uint32_t n)
{
    LsPipeKind k = {from, to, to, NULL, NULL};
    k.begin = ls_arena_alloc(w->arena, w->micros, sizeof *k.begin);
    k.end = ls_arena_alloc(w->arena, w->micros, sizeof *k.end);
    for (uint32_t m = 0; m < w->micros; m++)
        set_window(w, &k, m, sent, n);
    for (uint32_t j = 0; j < w->n; j++)
        if (w->kind[j].reach == k.reach
            && memcmp(w->kind[j].begin, k.begin, w->micros * sizeof *k.begin) == 0
            && memcmp(w->kind[j].end, k.end, w->micros * sizeof *k.end) == 0)
            return j;
    w->kind = ls_arena_grow(w->arena, w->kind, w->n, w->n + 1u, sizeof *w->kind, &w->room);
    w->kind[w->n] = k;
    return w->n++;
}

/* Windows begin and end in the order of the micro-batches, so those that meet one window are of
 * neighbours. */
uint32_t ls_pipe_copies(const LsPipeWindows *w, uint32_t a, uint32_t b)
{
    const LsPipeKind *x = &w->kind[a], *y = &w->kind[b];
    uint32_t copies = 1, lo = 0, end = 0;
    for (uint32_t m = 0; m < w->micros; m++) {
        if (x->end[m] < 0)
            continue;
        while (lo < w->micros && y->end[lo] < x->begin[m])
            lo++;
        while (end < w->micros && y->begin[end] <= x->end[m])
            end++;
        if (lo < m && lo < end)
            copies = m - lo + 1 > copies ? m - lo + 1 : copies;
        if (end > m + 1 && lo < end)
            copies = end - m > copies ? end - m : copies;
    }
    return copies;
}

bool ls_pipe_first_meets(const LsPipeWindows *w, uint32_t a, uint32_t b, uint32_t copies)
{
    const LsPipeKind *x = &w->kind[a], *y = &w->kind[b];
    bool meets = false;
    for (uint32_t m = copies; m < w->micros; m += copies)
        meets |= x->end[0] >= 0 && y->end[m] >= 0 && x->begin[0] <= y->end[m]
                 && y->begin[m] <= x->end[0];
    return meets;
}
