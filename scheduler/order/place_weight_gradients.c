/* scheduler/order/place_weight_gradients.c -- chooses where weight gradients run: no other node
 * waits for them.
 *
 * A weight gradient that only its update reads may run at any time once its operands exist. Run
 * early, its result must stay if its update has to wait or if it is an output. Run late, its
 * operands stay. Each weight gradient runs at the first moment when more bytes die with it than
 * stay, else at the end. */
#include "scheduler/order/place_weight_gradients.h"

#include "scheduler/order/run_order.h"

typedef struct Leaves {
    const LsProb *p;
    const LsLive *live;         /* liveness of the spine alone */
    LsSeq spine, out;
    LsRows reading;             /* by tensor: the leaves that read it */
    uint32_t *ready;            /* by leaf: number of spine runs that must come first; LS_NO_ID:
                                 * placed, or not a leaf */
    uint32_t *waiting;          /* by tensor: number of its readers among leaves not yet placed */
    uint32_t *now;              /* by tensor: its instance on the spine, or LS_NO_ID */
    uint32_t *taker;            /* by tensor: the first update that reads it, or 0 */
    uint32_t *last;             /* by node: number of its last run on the spine, from 1 */
    uint32_t *stack, nstack;
} Leaves;

/* Splits seq into spine and leaves. A leaf is ready after the instances that it reads in seq. */
static void split(Leaves *l, LsArena *arena, const LsSeq *seq)
{
    const LsProb *p = l->p;
    uint32_t *made = ls_arena_alloc(arena, p->nt + 1u, sizeof *made);
    for (uint32_t v = 0; v < p->n; v++)
        l->ready[v] = LS_NO_ID;
    for (uint32_t s = 0; s < seq->n; s++) {
        uint32_t v = seq->node[s], most = 0;
        if (p->role[v] == LS_ROLE_SPINE) {
            l->spine.node[l->spine.n++] = v;
            l->last[v] = l->spine.n;
        }
        for (uint32_t k = p->in.at[v]; p->role[v] == LS_ROLE_LEAF && k < p->in.at[v + 1]; k++)
            most = made[p->in.id[k]] > most ? made[p->in.id[k]] : most;
        if (p->role[v] == LS_ROLE_LEAF)
            l->ready[v] = most;
        for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++)
            made[p->out.id[k]] = l->spine.n;
    }
}

static void find_readers(Leaves *l, LsArena *arena)
{
    const LsProb *p = l->p;
    LsPairs reading = {0};
    for (uint32_t v = 0; v < p->n; v++)
        for (uint32_t k = p->in.at[v]; l->ready[v] != LS_NO_ID && k < p->in.at[v + 1]; k++) {
            ls_pairs_add(arena, &reading, p->in.id[k], v);
            l->waiting[p->in.id[k]]++;
        }
    l->reading = ls_rows(arena, &reading, p->nt);
}

/* Returns the bytes that stay if leaf v runs at spine run s, followed by its update if that may run
 * then. */
static int64_t stays(const Leaves *l, uint32_t v, uint32_t s)
{
    enum { SOON = 4 };          /* spine runs: dX of the same layer comes before the update of W */
    const LsProb *p = l->p;
    int64_t bytes = 0;
    for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++) {
        uint32_t t = p->out.id[k];
        uint32_t u = l->taker[t];
        bool stay = p->dag->tensor[t].output;
        for (uint32_t j = p->before.at[u]; u != 0 && j < p->before.at[u + 1]; j++)
            stay |= l->last[p->before.id[j]] > s + SOON;
        bytes += stay ? p->size[t] : 0;
    }
    return bytes;
}

/* Returns the bytes of operands that only leaf v keeps live after spine run s. */
static int64_t dies(const Leaves *l, uint32_t v, uint32_t s)
{
    const LsProb *p = l->p;
    int64_t bytes = 0;
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
        uint32_t t = p->in.id[k], i = l->now[t];
        if (l->waiting[t] == 1 && (i == LS_NO_ID || l->live->inst[i].to <= s))
            bytes += p->size[t];
    }
    return bytes;
}

static void place(Leaves *l, uint32_t v)
{
    const LsProb *p = l->p;
    l->out.node[l->out.n++] = v;
    l->ready[v] = LS_NO_ID;
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
        uint32_t t = p->in.id[k];
        if (--l->waiting[t] == 1)
            l->stack[l->nstack++] = t;
    }
}

/* Tries the leaves that read a tensor ending with spine run s, and then those that share operands
 * with placed leaves. */
static void place_some(Leaves *l, uint32_t s)
{
    while (l->nstack > 0) {
        uint32_t t = l->stack[--l->nstack];
        for (uint32_t k = l->reading.at[t]; k < l->reading.at[t + 1]; k++) {
            uint32_t v = l->reading.id[k];
            if (l->ready[v] <= s + 1 && stays(l, v, s) < dies(l, v, s))
                place(l, v);
        }
    }
}

LsSeq ls_seq_place_leaves(LsArena *arena, const LsProb *p, const LsSeq *seq)
{
    Leaves l = {.p = p};
    l.spine.node = ls_arena_alloc(arena, seq->n + 1u, sizeof *l.spine.node);
    l.out.node = ls_arena_alloc(arena, seq->n + p->n + 1u, sizeof *l.out.node);
    l.ready = ls_arena_alloc(arena, p->n + 1u, sizeof *l.ready);
    l.waiting = ls_arena_alloc(arena, p->nt + 1u, sizeof *l.waiting);
    l.now = ls_arena_alloc(arena, p->nt + 1u, sizeof *l.now);
    l.last = ls_arena_alloc(arena, p->n + 1u, sizeof *l.last);
    l.taker = ls_arena_alloc(arena, p->nt + 1u, sizeof *l.taker);
    l.stack = ls_arena_alloc(arena, 2 * p->in.at[p->n] + p->out.at[p->n] + 1u,
                             sizeof *l.stack);
    for (uint32_t t = 0; t < p->nt; t++)
        l.now[t] = LS_NO_ID;
    split(&l, arena, seq);
    find_readers(&l, arena);
    for (uint32_t v = p->n; v-- > 0;)
        for (uint32_t k = p->in.at[v]; p->role[v] == LS_ROLE_UPDATE && k < p->in.at[v + 1]; k++)
            l.taker[p->in.id[k]] = v;
    LsLive *live = ls_live_new(arena, p);
    ls_live(p, &l.spine, live);
    l.live = live;
    for (uint32_t s = 0; s < l.spine.n; s++) {
        uint32_t v = l.spine.node[s];
        l.out.node[l.out.n++] = v;
        for (uint32_t k = live->first[s]; k < live->first[s + 1]; k++) {
            l.now[live->inst[k].tensor] = k;
            l.stack[l.nstack++] = live->inst[k].tensor;
        }
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
            if (l.now[p->in.id[k]] != LS_NO_ID && live->inst[l.now[p->in.id[k]]].to <= s)
                l.stack[l.nstack++] = p->in.id[k];
        place_some(&l, s);
    }
    for (uint32_t v = 0; v < p->n; v++)
        if (l.ready[v] != LS_NO_ID)
            l.out.node[l.out.n++] = v;
    ls_seq_place_updates(arena, p, &l.out);
    return l.out;
}
