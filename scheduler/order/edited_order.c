/* scheduler/order/edited_order.c -- see the header. */
#include "scheduler/order/edited_order.h"

#include <assert.h>
#include <string.h>

#define EMPTY (-((int64_t)1 << 61))     /* added to slots without a run, so that they are never the peak */

/* Units of work, fitted to times of whole searches (search_limit.h): a change of the tree, a search in a
 * list, an inserted or removed run, a slot when the tree is filled. */
enum { ADD_WORK = 30, LIST_WORK = 32, RUN_WORK = 450, SLOT_WORK = 38 };

static void add(LsTape *t, uint32_t from, uint32_t to, int64_t bytes)
{
    *t->work += ADD_WORK;
    ls_peak_tree_add(&t->tree, from, to, bytes);
}

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

/* ---- events and live bytes ---- */

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

/* Charges for reads passed one by one; free for values with few readers. */
static void charge_scan(const LsTape *t, uint32_t passed)
{
    enum { USUAL = 64 };
    *t->work += passed > USUAL ? passed - USUAL : 0;
}

/* Returns the run that ends the instance of write k: its last reader, or the writer; LS_TAPE_END: it lives to
 * the end. */
static uint32_t end_of(const LsTape *t, uint32_t tensor, uint32_t k)
{
    const LsTapeList *l = &t->list[tensor];
    uint32_t from = k;
    while (k + 1 < l->n && l->event[k + 1] % 2 == 0)
        k++;
    charge_scan(t, k - from);
    return k + 1 == l->n && t->p->dag->tensor[tensor].output ? LS_TAPE_END : l->event[k] / 2;
}

/* Returns the last write among the first k events, or LS_NO_ID. */
static uint32_t write_before(const LsTape *t, const LsTapeList *l, uint32_t k)
{
    uint32_t from = k;
    while (k > 0 && l->event[k - 1] % 2 == 0)
        k--;
    charge_scan(t, from - k);
    return k - 1;                                   /* k = 0: LS_NO_ID */
}

/* Queues the run for weighing. One change touches a run with many pairs many times, so such a run is queued once. */
static void touch(LsTape *t, uint32_t run)
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

static void take_slot(LsTape *t, uint32_t slot, uint32_t run)
{
    t->at[slot] = run;
    t->full[slot / 64] |= UINT64_C(1) << slot % 64;
}

static void leave_slot(LsTape *t, uint32_t slot)
{
    t->at[slot] = LS_TAPE_END;
    t->full[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

static uint32_t last_slot(const LsTape *t, uint32_t run)
{
    return t->slot[run] - (run == LS_TAPE_END);
}

/* Moves the end of an instance from run a to run b. */
static void move_end(LsTape *t, uint32_t tensor, uint32_t a, uint32_t b)
{
    if (a == b)
        return;
    uint32_t from = last_slot(t, a), to = last_slot(t, b);
    int64_t size = t->p->size[tensor];
    if (from < to)
        add(t, from + 1, to, size);
    else
        add(t, to + 1, from, -size);
    touch(t, a);
    touch(t, b);
}

static uint32_t reads_after(const LsTape *t, const LsTapeList *l, uint32_t k)
{
    uint32_t n = 0;
    while (k + n < l->n && l->event[k + n] % 2 == 0)
        n++;
    charge_scan(t, n);
    return n;
}

/* A read of a guarded tensor at place k is valid only if no write comes before it. */
static bool is_updated(const LsTape *t, const LsTapeList *l, uint32_t k)
{
    return write_before(t, l, k) != LS_NO_ID;
}

static void put_event(LsTape *t, uint32_t tensor, uint32_t run, bool write)
{
    LsTapeList *l = &t->list[tensor];
    uint32_t k = ls_tape_events_before(t, tensor, run);
    uint32_t before = write_before(t, l, k);
    uint32_t old_end = before != LS_NO_ID ? end_of(t, tensor, before) : 0;
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
        move_end(t, tensor, old_end, end_of(t, tensor, before));
    else
        t->bad = write ? t->bad - reads_after(t, l, k + 1) : t->bad + 1;
    if (write) {
        uint32_t end = end_of(t, tensor, k);
        add(t, t->slot[run], last_slot(t, end), t->p->size[tensor]);
        touch(t, end);
    }
}

static void take_event(LsTape *t, uint32_t tensor, uint32_t run, bool write)
{
    LsTapeList *l = &t->list[tensor];
    uint32_t k = ls_tape_events_before(t, tensor, run);
    uint32_t before = write_before(t, l, k);
    uint32_t old_end = before != LS_NO_ID ? end_of(t, tensor, before) : 0;
    if (t->guard[tensor])
        t->bad -= write ? l->n - k - 1 : is_updated(t, l, k);
    else if (write) {
        uint32_t end = end_of(t, tensor, k);
        add(t, t->slot[run], last_slot(t, end), -t->p->size[tensor]);
        touch(t, end);
        t->bad += before == LS_NO_ID ? reads_after(t, l, k + 1) : 0;
    } else {
        t->bad -= before == LS_NO_ID;
    }
    l->n--;
    l->writes -= write;
    memmove(l->event + k, l->event + k + 1, (l->n - k) * sizeof *l->event);
    if (!t->guard[tensor] && before != LS_NO_ID)
        move_end(t, tensor, old_end, end_of(t, tensor, before));
}

/* Returns whether the run ends the instance of its operand. */
static bool ends(const LsTape *t, uint32_t tensor, uint32_t run)
{
    const LsTapeList *l = &t->list[tensor];
    uint32_t k = ls_tape_events_before(t, tensor, run);
    if (k >= l->n || l->event[k] != 2 * run || write_before(t, l, k) == LS_NO_ID)
        return false;
    return k + 1 < l->n ? l->event[k + 1] % 2 : !t->p->dag->tensor[tensor].output;
}

/* Recomputes the bytes that in-place reuse saves: results that lie in the place of operands ending with the
 * run. Pairs are taken in list order, as in liveness.c. */
static void weigh_pairs(LsTape *t, uint32_t run)
{
    const LsDagNode *node = &t->p->dag->node[t->run[run].node];
    int64_t saved = 0;
    t->stamp++;
    for (uint32_t k = 0; k < node->ninplace && t->p->inplace; k++) {
        LsDagPair pair = node->inplace[k];
        if (!ls_prob_fits(t->p, pair) || t->taken[pair.in] == t->stamp
            || t->taken[pair.out] == t->stamp || !ends(t, pair.in, run))
            continue;
        t->taken[pair.in] = t->taken[pair.out] = t->stamp;
        saved += t->p->size[pair.out];
    }
    uint32_t slot = t->slot[run];
    add(t, slot, slot, t->run[run].saved - saved);
    t->run[run].saved = saved;
}

static void weigh_dirty(LsTape *t)
{
    for (uint32_t k = 0; k < t->ndirty; k++) {
        t->run[t->dirty[k]].dirty = false;
        if (t->run[t->dirty[k]].node != LS_NO_ID)
            weigh_pairs(t, t->dirty[k]);
    }
    t->ndirty = 0;
}

/* ---- slots ---- */

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
                fill[last_slot(t, end_of(t, tensor, k)) + 1] -= t->p->size[tensor];
            }
    }
    for (uint32_t s = 0; s < t->tree.n; s++) {
        const LsTapeRun *r = &t->run[t->at[s]];
        used += fill[s];
        fill[s] = used + (t->at[s] == LS_TAPE_END ? EMPTY : t->p->workspace[r->node] - r->saved);
    }
    ls_peak_tree_fill(&t->tree, fill);
}

/* Spreads the runs evenly over at least four slots each. */
static void spread(LsTape *t)
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
        take_slot(t, t->slot[r], r);
    }
    fill_tree(t);
}

/* Adds `bytes` to places a .. b - 1; if b < a, subtracts them from places b .. a - 1. */
static void add_between(LsTape *t, uint32_t a, uint32_t b, int64_t bytes)
{
    if (a < b)
        add(t, a, b - 1, bytes);
    else if (b < a)
        add(t, b, a - 1, -bytes);
}

/* Moves a run to an empty slot; no run lies between. */
static void slide(LsTape *t, uint32_t run, uint32_t to)
{
    const LsProb *p = t->p;
    uint32_t v = t->run[run].node, from = t->slot[run];
    for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++) {
        uint32_t x = p->out.id[k], end = end_of(t, x, ls_tape_events_before(t, x, run));
        add_between(t, to, from, p->size[x]);
        if (end == run)                             /* nobody reads it */
            add_between(t, from + 1, to + 1, p->size[x]);
    }
    for (uint32_t k = t->reads.at[v]; k < t->reads.at[v + 1]; k++)
        if (!t->guard[t->reads.id[k]] && ends(t, t->reads.id[k], run))
            add_between(t, from + 1, to + 1, p->size[t->reads.id[k]]);
    int64_t mine = p->workspace[v] - t->run[run].saved - EMPTY;
    add(t, from, from, -mine);
    add(t, to, to, mine);
    leave_slot(t, from);
    take_slot(t, to, run);
    t->slot[run] = to;
}

/* Frees a slot in front of slot `hi` by sliding the runs between there and the nearest empty slot. Returns
 * the freed slot, or LS_NO_ID if no empty slot is near. */
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

/* Returns a free slot between `before` and the run in front of it. */
static uint32_t free_slot(LsTape *t, uint32_t before)
{
    for (;;) {
        uint32_t prev = t->run[before].prev, hi = t->slot[before];
        uint32_t lo = prev == LS_TAPE_END ? 0 : t->slot[prev] + 1;
        if (lo < hi)
            return lo + (hi - lo) / 4;              /* runs are often inserted in sequence */
        uint32_t slot = 8 * (t->n + 1) > 7 * t->tree.n ? LS_NO_ID : move_up(t, hi);
        if (slot != LS_NO_ID)
            return slot;
        spread(t);
    }
}

/* ---- changes ---- */

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
    uint32_t slot = free_slot(t, before), r = new_run(t), prev = t->run[before].prev;
    t->run[r] = (LsTapeRun){.node = node, .prev = prev, .next = before};
    t->slot[r] = slot;
    t->run[prev].next = t->run[before].prev = r;
    take_slot(t, slot, r);
    *t->work += RUN_WORK;
    t->n++;
    t->count[node]++;
    t->cost += p->cost[node];
    add(t, slot, slot, p->workspace[node] - EMPTY);
    for (uint32_t k = t->reads.at[node]; k < t->reads.at[node + 1]; k++)
        put_event(t, t->reads.id[k], r, false);
    for (uint32_t k = t->writes.at[node]; k < t->writes.at[node + 1]; k++)
        put_event(t, t->writes.id[k], r, true);
    touch(t, r);
    weigh_dirty(t);
    return r;
}

static void take_run(LsTape *t, uint32_t r)
{
    const LsProb *p = t->p;
    uint32_t node = t->run[r].node, slot = t->slot[r];
    for (uint32_t k = t->writes.at[node + 1]; k-- > t->writes.at[node];)
        take_event(t, t->writes.id[k], r, true);
    for (uint32_t k = t->reads.at[node + 1]; k-- > t->reads.at[node];)
        take_event(t, t->reads.id[k], r, false);
    add(t, slot, slot, t->run[r].saved - p->workspace[node] + EMPTY);
    t->cost -= p->cost[node];
    t->count[node]--;
    *t->work += RUN_WORK;
    t->n--;
    leave_slot(t, slot);
    t->run[t->run[r].prev].next = t->run[r].next;
    t->run[t->run[r].next].prev = t->run[r].prev;
    t->run[r].node = LS_NO_ID;
    weigh_dirty(t);
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
    spread(t);
    for (uint32_t r = 1; r <= seq->n; r++)
        touch(t, r);
    weigh_dirty(t);
}

void ls_tape_store(const LsTape *t, LsSeq *seq)
{
    seq->n = 0;
    for (uint32_t r = t->run[LS_TAPE_END].next; r != LS_TAPE_END; r = t->run[r].next)
        seq->node[seq->n++] = t->run[r].node;
    assert(seq->n == t->n);
}

/* ---- questions ---- */

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

uint32_t ls_tape_maker(const LsTape *t, uint32_t tensor, uint32_t run)
{
    uint32_t w = write_before(t, &t->list[tensor], ls_tape_events_before(t, tensor, run));
    return w == LS_NO_ID ? LS_TAPE_END : t->list[tensor].event[w] / 2;
}

bool ls_tape_has(const LsTape *t, uint32_t tensor, uint32_t run)
{
    const LsTapeList *l = &t->list[tensor];
    uint32_t k = ls_tape_events_before(t, tensor, run);
    if (k == 0 || write_before(t, l, k) == LS_NO_ID)
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
