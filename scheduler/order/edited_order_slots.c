/* scheduler/order/edited_order_slots.c -- where runs lie among the slots of the tape, and how they
 * make room. */
#include "scheduler/order/edited_order_parts.h"

#include <string.h>

enum { SLOT_WORK = 38 };        /* of a slot when the tree is filled, as LS_TAPE_ADD_WORK */

void ls_tape_take_slot(LsTape *t, uint32_t slot, uint32_t run)
{
    t->at[slot] = run;
    t->full[slot / 64] |= UINT64_C(1) << slot % 64;
}

void ls_tape_leave_slot(LsTape *t, uint32_t slot)
{
    t->at[slot] = LS_TAPE_END;
    t->full[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

/* Fills the tree from the events. */
static void fill_tree(LsTape *t)
{
    int64_t *fill = t->fill, used = 0;
    *t->work += (uint64_t)SLOT_WORK * t->tree.n;
    memset(fill, 0, (t->tree.n + 1u) * sizeof *fill);
    for (uint32_t tensor = 0; tensor < t->p->nt; tensor++) {
        const LsTapeList *l = &t->list[tensor];
        for (uint32_t k = 0; k < l->n && !t->guard[tensor]; k++)
            if (l->event[k] % 2) {
                fill[t->slot[l->event[k] / 2]] += t->p->size[tensor];
                fill[ls_tape_last_slot(t, ls_tape_end_of(t, tensor, k)) + 1] -= t->p->size[tensor];
            }
    }
    for (uint32_t s = 0; s < t->tree.n; s++) {
        const LsTapeRun *r = &t->run[t->at[s]];
        used += fill[s];
        fill[s] =
            used + (t->at[s] == LS_TAPE_END ? LS_TAPE_EMPTY : t->p->workspace[r->node] - r->saved);
    }
    ls_peak_tree_fill(&t->tree, fill);
}

void ls_tape_spread(LsTape *t)
{
    uint32_t s = 0;
    if (4 * (t->n + 1) > t->tree.n) {
        uint32_t want = 64;
        while (want < 8 * (t->n + 1))
            want *= 2;
        t->tree = ls_peak_tree_new(t->arena, want);
        t->at = ls_arena_alloc(t->arena, want, sizeof *t->at);
        t->full = ls_arena_alloc(t->arena, want / 64, sizeof *t->full);
        t->fill = ls_arena_alloc(t->arena, want + 1u, sizeof *t->fill);
    }
    t->slot[LS_TAPE_END] = t->tree.n;
    memset(t->at, 0, t->tree.n * sizeof *t->at);
    memset(t->full, 0, t->tree.n / 64 * sizeof *t->full);
    for (uint32_t r = t->run[LS_TAPE_END].next; r != LS_TAPE_END; r = t->run[r].next, s++) {
        t->slot[r] = (uint32_t)((uint64_t)(2 * s + 1) * t->tree.n / (2 * (t->n + 1)));
        ls_tape_take_slot(t, t->slot[r], r);
    }
    fill_tree(t);
}

/* Adds `bytes` to places a .. b - 1; if b < a, subtracts them from places b .. a - 1. */
static void add_between(LsTape *t, uint32_t a, uint32_t b, int64_t bytes)
{
    if (a < b)
        ls_tape_add(t, a, b - 1, bytes);
    else if (b < a)
        ls_tape_add(t, b, a - 1, -bytes);
}

/* Moves a run to an empty slot; no run lies between. */
static void slide(LsTape *t, uint32_t run, uint32_t to)
{
    const LsProb *p = t->p;
    uint32_t v = t->run[run].node, from = t->slot[run];
    for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++) {
        uint32_t x = p->out.id[k], end = ls_tape_end_of(t, x, ls_tape_events_before(t, x, run));
        add_between(t, to, from, p->size[x]);
        if (end == run)                             /* nobody reads it */
            add_between(t, from + 1, to + 1, p->size[x]);
    }
    for (uint32_t k = t->reads.at[v]; k < t->reads.at[v + 1]; k++)
        if (!t->guard[t->reads.id[k]] && ls_tape_ends(t, t->reads.id[k], run))
            add_between(t, from + 1, to + 1, p->size[t->reads.id[k]]);
    int64_t mine = p->workspace[v] - t->run[run].saved - LS_TAPE_EMPTY;
    ls_tape_add(t, from, from, -mine);
    ls_tape_add(t, to, to, mine);
    ls_tape_leave_slot(t, from);
    ls_tape_take_slot(t, to, run);
    t->slot[run] = to;
}

/* Frees a slot in front of slot `hi` by sliding the runs between there and the nearest empty slot.
 * Returns the freed slot, or LS_NO_ID if no empty slot is near. */
static uint32_t move_up(LsTape *t, uint32_t hi)
{
    enum { FAR = 48 };
    for (uint32_t d = 1; d < FAR; d++) {
        if (d < hi && t->at[hi - 1 - d] == LS_TAPE_END) {
            for (uint32_t s = hi - 1 - d; s + 1 < hi; s++)
                slide(t, t->at[s + 1], s);
            return hi - 1;
        }
        if (hi + d < t->tree.n && t->at[hi + d] == LS_TAPE_END) {
            for (uint32_t s = hi + d; s > hi; s--)
                slide(t, t->at[s - 1], s);
            return hi;
        }
    }
    return LS_NO_ID;
}

uint32_t ls_tape_free_slot(LsTape *t, uint32_t before)
{
    for (;;) {
        uint32_t prev = t->run[before].prev, hi = t->slot[before];
        uint32_t lo = prev == LS_TAPE_END ? 0 : t->slot[prev] + 1;
        if (lo < hi)
            return lo + (hi - lo) / 4;              /* runs are often inserted in sequence */
        uint32_t slot = 8 * (t->n + 1) > 7 * t->tree.n ? LS_NO_ID : move_up(t, hi);
        if (slot != LS_NO_ID)
            return slot;
        ls_tape_spread(t);
    }
}

uint32_t ls_tape_run_from(const LsTape *t, uint32_t slot)
{
    uint32_t word = slot / 64, words = t->tree.n / 64;
    if (word >= words)
        return LS_TAPE_END;
    uint64_t rest = t->full[word] & UINT64_MAX << slot % 64;
    while (rest == 0 && ++word < words)
        rest = t->full[word];
    return rest == 0 ? LS_TAPE_END : t->at[64 * word + (uint32_t)__builtin_ctzll(rest)];
}
