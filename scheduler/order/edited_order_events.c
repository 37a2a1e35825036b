/* scheduler/order/edited_order_events.c -- reads and writes of the tape, and the live bytes that
 * follow from them. */
#include "scheduler/order/edited_order_parts.h"

#include <string.h>

enum { LIST_WORK = 32 };        /* of a search in a list, as LS_TAPE_ADD_WORK */

uint32_t ls_tape_events_before(const LsTape *t, uint32_t tensor, uint32_t run)
{
    const LsTapeList *l = &t->list[tensor];
    uint32_t slot = t->slot[run], lo = 0, hi = l->n;
    *t->work += LIST_WORK;
    for (; hi - lo > 8;) {
        uint32_t mid = (lo + hi) / 2;
        if (t->slot[l->event[mid] / 2] < slot)
            lo = mid + 1;
        else
            hi = mid;
    }
    uint32_t k = lo;                                /* few are left: count them without branches */
    for (uint32_t j = lo; j < hi; j++)
        k += t->slot[l->event[j] / 2] < slot;
    return k;
}

/* One change touches a run with many pairs many times, so such a run is queued once. */
void ls_tape_touch(LsTape *t, uint32_t run)
{
    enum { FEW = 8 };
    uint32_t npair = run == LS_TAPE_END ? 0 : t->p->dag->node[t->run[run].node].ninplace;
    if (npair == 0 || (npair > FEW && t->run[run].dirty))
        return;
    t->run[run].dirty = true;
    t->dirty = ls_arena_grow(t->arena, t->dirty, t->ndirty, t->ndirty + 1u, sizeof *t->dirty,
                             &t->dirty_room);
    t->dirty[t->ndirty++] = run;
}

/* Moves the end of an instance from run a to run b. */
static void move_end(LsTape *t, uint32_t tensor, uint32_t a, uint32_t b)
{
    if (a == b)
        return;
    uint32_t from = ls_tape_last_slot(t, a), to = ls_tape_last_slot(t, b);
    int64_t size = t->p->size[tensor];
    if (from < to)
        ls_tape_add(t, from + 1, to, size);
    else
        ls_tape_add(t, to + 1, from, -size);
    ls_tape_touch(t, a);
    ls_tape_touch(t, b);
}

static uint32_t reads_after(const LsTape *t, const LsTapeList *l, uint32_t k)
{
    uint32_t n = 0;
    while (k + n < l->n && l->event[k + n] % 2 == 0)
        n++;
    ls_tape_charge_scan(t, n);
    return n;
}

/* A read of a guarded tensor at place k is valid only if no write comes before it. */
static bool is_updated(const LsTape *t, const LsTapeList *l, uint32_t k)
{
    return ls_tape_write_before(t, l, k) != LS_NO_ID;
}

void ls_tape_put_event(LsTape *t, uint32_t tensor, uint32_t run, bool write)
{
    LsTapeList *l = &t->list[tensor];
    uint32_t k = ls_tape_events_before(t, tensor, run);
    uint32_t before = ls_tape_write_before(t, l, k);
    uint32_t old_end = before != LS_NO_ID ? ls_tape_end_of(t, tensor, before) : 0;
    l->event = ls_arena_grow(t->arena, l->event, l->n, l->n + 1u, sizeof *l->event, &l->room);
    memmove(l->event + k + 1, l->event + k, (l->n - k) * sizeof *l->event);
    l->event[k] = 2 * run + write;
    l->n++;
    l->writes += write;
    if (t->guard[tensor]) {
        t->bad += write ? l->n - k - 1 : is_updated(t, l, k);
        return;
    }
    if (before != LS_NO_ID)
        move_end(t, tensor, old_end, ls_tape_end_of(t, tensor, before));
    else
        t->bad = write ? t->bad - reads_after(t, l, k + 1) : t->bad + 1;
    if (write) {
        uint32_t end = ls_tape_end_of(t, tensor, k);
        ls_tape_add(t, t->slot[run], ls_tape_last_slot(t, end), t->p->size[tensor]);
        ls_tape_touch(t, end);
    }
}

void ls_tape_take_event(LsTape *t, uint32_t tensor, uint32_t run, bool write)
{
    LsTapeList *l = &t->list[tensor];
    uint32_t k = ls_tape_events_before(t, tensor, run);
    uint32_t before = ls_tape_write_before(t, l, k);
    uint32_t old_end = before != LS_NO_ID ? ls_tape_end_of(t, tensor, before) : 0;
    if (t->guard[tensor])
        t->bad -= write ? l->n - k - 1 : is_updated(t, l, k);
    else if (write) {
        uint32_t end = ls_tape_end_of(t, tensor, k);
        ls_tape_add(t, t->slot[run], ls_tape_last_slot(t, end), -t->p->size[tensor]);
        ls_tape_touch(t, end);
        t->bad += before == LS_NO_ID ? reads_after(t, l, k + 1) : 0;
    } else {
        t->bad -= before == LS_NO_ID;
    }
    l->n--;
    l->writes -= write;
    memmove(l->event + k, l->event + k + 1, (l->n - k) * sizeof *l->event);
    if (!t->guard[tensor] && before != LS_NO_ID)
        move_end(t, tensor, old_end, ls_tape_end_of(t, tensor, before));
}

bool ls_tape_ends(const LsTape *t, uint32_t tensor, uint32_t run)
{
    const LsTapeList *l = &t->list[tensor];
    uint32_t k = ls_tape_events_before(t, tensor, run);
    if (k >= l->n || l->event[k] != 2 * run || ls_tape_write_before(t, l, k) == LS_NO_ID)
        return false;
    return k + 1 < l->n ? l->event[k + 1] % 2 : !t->p->dag->tensor[tensor].output;
}

/* Recomputes the bytes that in-place reuse saves: results that lie in the place of operands ending
 * with the run. Pairs are taken in list order, as in liveness.c. */
static void weigh_pairs(LsTape *t, uint32_t run)
{
    const LsDagNode *node = &t->p->dag->node[t->run[run].node];
    int64_t saved = 0;
    t->stamp++;
    for (uint32_t k = 0; k < node->ninplace && t->p->inplace; k++) {
        LsDagPair pair = node->inplace[k];
        if (!ls_prob_fits(t->p, pair) || t->taken[pair.in] == t->stamp
            || t->taken[pair.out] == t->stamp || !ls_tape_ends(t, pair.in, run))
            continue;
        t->taken[pair.in] = t->taken[pair.out] = t->stamp;
        saved += t->p->size[pair.out];
    }
    uint32_t slot = t->slot[run];
    ls_tape_add(t, slot, slot, t->run[run].saved - saved);
    t->run[run].saved = saved;
}

void ls_tape_weigh(LsTape *t)
{
    for (uint32_t k = 0; k < t->ndirty; k++) {
        t->run[t->dirty[k]].dirty = false;
        if (t->run[t->dirty[k]].node != LS_NO_ID)
            weigh_pairs(t, t->dirty[k]);
    }
    t->ndirty = 0;
}

/* ---- questions ---- */

uint32_t ls_tape_maker(const LsTape *t, uint32_t tensor, uint32_t run)
{
    uint32_t w = ls_tape_write_before(t, &t->list[tensor], ls_tape_events_before(t, tensor, run));
    return w == LS_NO_ID ? LS_TAPE_END : t->list[tensor].event[w] / 2;
}

bool ls_tape_has(const LsTape *t, uint32_t tensor, uint32_t run)
{
    const LsTapeList *l = &t->list[tensor];
    uint32_t k = ls_tape_events_before(t, tensor, run);
    if (k == 0 || ls_tape_write_before(t, l, k) == LS_NO_ID)
        return false;
    return k < l->n ? l->event[k] % 2 == 0 : t->p->dag->tensor[tensor].output;
}

uint32_t ls_tape_next_read(const LsTape *t, uint32_t tensor, uint32_t run)
{
    if (t->p->size[tensor] == 0 || t->p->maker[tensor] == LS_NO_ID || !ls_tape_has(t, tensor, run))
        return LS_TAPE_END;
    const uint32_t k = ls_tape_events_before(t, tensor, run);
    const uint32_t next = k < t->list[tensor].n ? ls_tape_event_run(t, tensor, k) : LS_TAPE_END;
    return next == run ? LS_TAPE_END : next;
}

bool ls_tape_must_stay(const LsTape *t, uint32_t run)
{
    uint32_t node = t->run[run].node;
    const LsDagNode *d = &t->p->dag->node[node];
    return d->nupd > 0 || (d->required && t->count[node] == 1);
}

bool ls_tape_is_dead(const LsTape *t, uint32_t run)
{
    const LsProb *p = t->p;
    uint32_t node = t->run[run].node;
    if (ls_tape_must_stay(t, run))
        return false;
    for (uint32_t k = p->out.at[node]; k < p->out.at[node + 1]; k++) {
        const LsTapeList *l = &t->list[p->out.id[k]];
        uint32_t at = ls_tape_events_before(t, p->out.id[k], run) + 1;
        if (at < l->n ? l->event[at] % 2 == 0 : p->dag->tensor[p->out.id[k]].output)
            return false;
    }
    return true;
}
