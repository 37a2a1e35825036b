/* scheduler/order/edited_order_changes.c -- the tape: runs inserted, removed and restored; whole
 * sequences. */
#include "scheduler/order/edited_order_parts.h"

#include <assert.h>
#include <string.h>

enum { RUN_WORK = 450 };        /* of an inserted or removed run, as LS_TAPE_ADD_WORK */

static bool counts(const LsTape *t, const LsDagNode *node, uint32_t x, bool write)
{
    if (!t->p->dag->tensor[x].persistent)
        return true;
    return t->guard[x] && (write || !ls_id_in(node->upd, node->nupd, x));
}

/* Adds to row v the tensors of the list that have events, each once. */
static void add_row(const LsTape *t, LsPairs *rows, uint32_t v, const uint32_t *list, uint32_t n,
                    bool write)
{
    for (uint32_t k = 0; k < n; k++)
        if (counts(t, &t->p->dag->node[v], list[k], write))
            ls_pairs_add_once(t->arena, rows, v, list[k]);
}

static void find_rows(LsTape *t)
{
    const LsDag *g = t->p->dag;
    LsPairs reads = {0}, writes = {0};
    for (uint32_t v = 0; v < g->nnode; v++)
        for (uint32_t k = 0; k < g->node[v].nupd; k++)
            t->guard[g->node[v].upd[k]] = g->tensor[g->node[v].upd[k]].persistent;
    for (uint32_t v = 0; v < g->nnode; v++) {
        const LsDagNode *node = &g->node[v];
        add_row(t, &reads, v, node->in, node->nin, false);
        add_row(t, &writes, v, node->out, node->nout, true);
        add_row(t, &writes, v, node->upd, node->nupd, true);
    }
    t->reads = ls_rows(t->arena, &reads, g->nnode);
    t->writes = ls_rows(t->arena, &writes, g->nnode);
}

LsTape *ls_tape_new(const LsProb *p)
{
    LsArena *arena = ls_arena_new();
    LsTape *t = ls_arena_alloc(arena, 1, sizeof *t);
    *t = (LsTape){.p = p, .arena = arena, .nrun = 1};
    t->work = ls_arena_alloc(arena, 1, sizeof *t->work);
    t->guard = ls_arena_alloc(arena, p->nt + 1u, sizeof *t->guard);
    t->list = ls_arena_alloc(arena, p->nt + 1u, sizeof *t->list);
    t->count = ls_arena_alloc(arena, p->n + 1u, sizeof *t->count);
    t->taken = ls_arena_alloc(arena, p->nt + 1u, sizeof *t->taken);
    find_rows(t);
    return t;
}

void ls_tape_free(LsTape *t)
{
    ls_arena_free(t->arena);
}

/* Makes room for `want` runs and keeps the first `used`. */
static void make_room(LsTape *t, uint32_t used, uint32_t want)
{
    uint32_t room = t->room;                        /* both arrays grow in the same steps */
    t->slot = ls_arena_grow(t->arena, t->slot, used, want, sizeof *t->slot, &room);
    t->run = ls_arena_grow(t->arena, t->run, used, want, sizeof *t->run, &t->room);
}

static uint32_t new_run(LsTape *t)
{
    if (t->free == LS_TAPE_END) {
        make_room(t, t->nrun, t->nrun + 1u);
        t->run[t->nrun] = (LsTapeRun){.node = LS_NO_ID};
        t->free = t->nrun++;
    }
    uint32_t r = t->free;
    t->free = t->run[r].next;
    return r;
}

static uint32_t put_run(LsTape *t, uint32_t node, uint32_t before)
{
    const LsProb *p = t->p;
    uint32_t slot = ls_tape_free_slot(t, before), r = new_run(t), prev = t->run[before].prev;
    t->run[r] = (LsTapeRun){.node = node, .prev = prev, .next = before};
    t->slot[r] = slot;
    t->run[prev].next = t->run[before].prev = r;
    ls_tape_take_slot(t, slot, r);
    *t->work += RUN_WORK;
    t->n++;
    t->count[node]++;
    t->cost += p->cost[node];
    ls_tape_add(t, slot, slot, p->workspace[node] - LS_TAPE_EMPTY);
    for (uint32_t k = t->reads.at[node]; k < t->reads.at[node + 1]; k++)
        ls_tape_put_event(t, t->reads.id[k], r, false);
    for (uint32_t k = t->writes.at[node]; k < t->writes.at[node + 1]; k++)
        ls_tape_put_event(t, t->writes.id[k], r, true);
    ls_tape_touch(t, r);
    ls_tape_weigh(t);
    return r;
}

static void take_run(LsTape *t, uint32_t r)
{
    const LsProb *p = t->p;
    uint32_t node = t->run[r].node, slot = t->slot[r];
    for (uint32_t k = t->writes.at[node + 1]; k-- > t->writes.at[node];)
        ls_tape_take_event(t, t->writes.id[k], r, true);
    for (uint32_t k = t->reads.at[node + 1]; k-- > t->reads.at[node];)
        ls_tape_take_event(t, t->reads.id[k], r, false);
    ls_tape_add(t, slot, slot, t->run[r].saved - p->workspace[node] + LS_TAPE_EMPTY);
    t->cost -= p->cost[node];
    t->count[node]--;
    *t->work += RUN_WORK;
    t->n--;
    ls_tape_leave_slot(t, slot);
    t->run[t->run[r].prev].next = t->run[r].next;
    t->run[t->run[r].next].prev = t->run[r].prev;
    t->run[r].node = LS_NO_ID;
    ls_tape_weigh(t);
    t->run[r].next = t->free;
    t->free = r;
}

static void note(LsTape *t, LsTapeChange change)
{
    t->change = ls_arena_grow(t->arena, t->change, t->nchange, t->nchange + 1u,
                              sizeof *t->change, &t->change_room);
    t->change[t->nchange++] = change;
}

/* Returns whether `run` is a run on the tape. */
__attribute__((unused))         /* only asserts call it */
static bool is_run(const LsTape *t, uint32_t run)
{
    return run != LS_TAPE_END && run < t->nrun && t->run[run].node != LS_NO_ID;
}

uint32_t ls_tape_insert(LsTape *t, uint32_t node, uint32_t before)
{
    assert(node < t->p->n && (before == LS_TAPE_END || is_run(t, before)));
    uint32_t r = put_run(t, node, before);
    note(t, (LsTapeChange){r, node, before, true});
    return r;
}

void ls_tape_remove(LsTape *t, uint32_t run)
{
    assert(is_run(t, run));
    note(t, (LsTapeChange){run, t->run[run].node, t->run[run].next, false});
    take_run(t, run);
}

/* The free list is a stack, so a restored run gets its old number. */
void ls_tape_undo(LsTape *t, uint32_t mark)
{
    while (t->nchange > mark) {
        LsTapeChange c = t->change[--t->nchange];
        if (c.insert)
            take_run(t, c.run);
        else
            put_run(t, c.node, c.before);
    }
}

/* ---- whole sequences ---- */

/* Appends the events of a run to the lists. */
static void add_events(LsTape *t, uint32_t run, const LsRows *rows, bool write)
{
    uint32_t v = t->run[run].node;
    for (uint32_t k = rows->at[v]; k < rows->at[v + 1]; k++) {
        LsTapeList *l = &t->list[rows->id[k]];
        l->event = ls_arena_grow(t->arena, l->event, l->n, l->n + 1u, sizeof *l->event, &l->room);
        l->event[l->n++] = 2 * run + write;
        l->writes += write;
        t->bad += !write && (l->writes > 0) == t->guard[rows->id[k]];
    }
}

void ls_tape_load(LsTape *t, const LsSeq *seq)
{
    const LsProb *p = t->p;
    for (uint32_t k = 0; k < p->nt; k++)
        t->list[k].n = t->list[k].writes = 0;
    memset(t->count, 0, p->n * sizeof *t->count);
    make_room(t, 0, seq->n + 1);
    t->nrun = seq->n + 1;
    t->free = LS_TAPE_END;
    t->n = seq->n;
    t->nchange = t->ndirty = 0;
    t->cost = 0;
    t->bad = 0;
    t->run[LS_TAPE_END] = (LsTapeRun){LS_NO_ID, seq->n, seq->n > 0, 0, false};
    for (uint32_t s = 0; s < seq->n; s++) {
        assert(seq->node[s] < p->n);
        t->run[s + 1] = (LsTapeRun){seq->node[s], s, s + 1 < seq->n ? s + 2 : 0, 0,
                                      false};
        t->count[seq->node[s]]++;
        t->cost += p->cost[seq->node[s]];
    }
    for (uint32_t r = 1; r <= seq->n; r++) {        /* spread fills in the memory afterwards */
        add_events(t, r, &t->reads, false);
        add_events(t, r, &t->writes, true);
    }
    ls_tape_spread(t);
    for (uint32_t r = 1; r <= seq->n; r++)
        ls_tape_touch(t, r);
    ls_tape_weigh(t);
}

void ls_tape_store(const LsTape *t, LsSeq *seq)
{
    seq->n = 0;
    for (uint32_t r = t->run[LS_TAPE_END].next; r != LS_TAPE_END; r = t->run[r].next)
        seq->node[seq->n++] = t->run[r].node;
    assert(seq->n == t->n);
}
