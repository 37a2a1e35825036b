/* scheduler/joint.c -- see the header. */
#include "scheduler/joint.h"

#include <stdlib.h>
#include <string.h>

#include "scheduler/flow.h"

typedef struct Idle {
    uint32_t tensor, slot;
    uint32_t next, node;        /* who reads it next: run, its node */
} Idle;

typedef struct Keep {
    uint32_t edge;              /* is cut where the tensor is kept */
    double part;                /* of all bytes of the peak, at all runs above the target */
} Keep;

typedef struct Joint {
    LsMoves *m;
    LsTape *t;
    LsProb *p;
    LsArena *arena;
    uint32_t run;
    uint32_t *high;             /* by slot, one more: slots in front with more than the target */
    Idle *idle; uint32_t nidle;
    LsFlow flow;
    bool *seen;                 /* by vertex */
    bool *side;                 /* by vertex: what a cut leaves at the source's side */
    Keep *keep; uint32_t nkeep;
    bool *done;                 /* by node: made again */
} Joint;

enum { GRID = 1 << 30 };        /* capacities are whole numbers of this part of the sums */

static uint32_t vertex_of_tensor(uint32_t x) { return 2 + x; }
static uint32_t vertex_of_node(const LsProb *p, uint32_t v) { return 2 + p->nt + v; }

double ls_moves_energy(const LsMoves *m, double weight)
{
    int64_t over = ls_tape_peak(m->t) - m->target;
    if (over <= 0)
        return m->t->cost;
    return m->t->cost
           + weight * ((double)over + (double)ls_peak_tree_over(&m->t->tree, m->target) / 8);
}

/* ---- what is idle ---- */

/* Marks the slots below place `at` of the tree that have more than the limit. */
static void mark_high(Joint *j, uint32_t at, int64_t limit)
{
    const LsPeakTree *tree = &j->t->tree;
    if (tree->max[at] <= limit)
        return;
    if (at >= tree->n) {
        j->high[at - tree->n + 1] = 1;
        return;
    }
    mark_high(j, 2 * at, limit - tree->add[at]);
    mark_high(j, 2 * at + 1, limit - tree->add[at]);
}

static void count_high(Joint *j)
{
    j->high = ls_arena_alloc(j->arena, j->t->tree.n + 1u, sizeof *j->high);
    mark_high(j, 1, j->m->target);
    for (uint32_t s = 0; s < j->t->tree.n; s++)
        j->high[s + 1] += j->high[s];
}

/* The next run that reads what there is of x in front of the run, or LS_TAPE_END. */
static uint32_t next_of(const LsTape *t, uint32_t x, uint32_t run)
{
    uint32_t k = ls_tape_events_before(t, x, run);
    return k < t->list[x].n ? ls_tape_event_run(t, x, k) : LS_TAPE_END;
}

static int by_slot(const void *x, const void *y)
{
    const Idle *a = x, *b = y;
    if (a->slot != b->slot)
        return a->slot < b->slot ? -1 : 1;
    return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

/* What is in memory at the run, but neither made nor read there; by who reads it next. */
static void find_idle(Joint *j)
{
    const LsTape *t = j->t;
    const LsProb *p = j->p;
    j->idle = ls_arena_alloc(j->arena, p->nt + 1u, sizeof *j->idle);
    for (uint32_t x = 0; x < p->nt; x++) {
        if (p->size[x] == 0 || p->stuck[p->maker[x]] || !ls_tape_has(t, x, j->run))
            continue;
        uint32_t next = next_of(t, x, j->run);
        if (next != j->run)
            j->idle[j->nidle++] = (Idle){x, ls_tape_slot_of(t, next), next, t->run[next].node};
    }
    qsort(j->idle, j->nidle, sizeof *j->idle, by_slot);
}

/* ---- the network ---- */

/* Slots and their bytes are those at the start: changes may spread the runs. */
static double part_of(const Joint *j, uint32_t x)
{
    const LsTape *t = j->t;
    uint32_t k = ls_tape_events_before(t, x, j->run);
    uint32_t from = t->run[ls_tape_event_run(t, x, k - 1)].slot + 1;
    uint32_t to = ls_tape_slot_of(t, next_of(t, x, j->run));
    double runs = to > from ? j->high[to] - j->high[from] : 0;
    return (double)j->p->size[x] / (double)ls_tape_peak(t) * runs / j->high[t->tree.n];
}

static void add_node(Joint *j, uint32_t v, uint32_t before);

/* A tensor in memory at the run: kept, or made again. */
static void add_tensor(Joint *j, uint32_t x, uint32_t before)
{
    uint32_t v = j->p->maker[x], at = vertex_of_tensor(x);
    if (j->seen[at])
        return;
    j->seen[at] = true;
    if (j->p->stuck[v])
        return;
    j->keep[j->nkeep++] = (Keep){ls_flow_edge(&j->flow, at, vertex_of_node(j->p, v), 1),
                                 part_of(j, x)};
    add_node(j, v, before);
}

/* A run again of v in front of run `before`: what it reads must be there. */
static void add_node(Joint *j, uint32_t v, uint32_t before)
{
    const LsProb *p = j->p;
    uint32_t at = vertex_of_node(p, v);
    if (j->seen[at])
        return;
    j->seen[at] = true;
    double part = p->cost[v] / (p->base_cost > 0 ? p->base_cost : 1);
    ls_flow_edge(&j->flow, at, LS_FLOW_SINK,
                 p->stuck[v] ? LS_FLOW_ENDLESS : 1 + (int64_t)(GRID * part));
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1] && !p->stuck[v]; k++) {
        uint32_t u = p->in.id[k];
        if (ls_tape_has(j->t, u, j->run)) {
            ls_flow_edge(&j->flow, at, vertex_of_tensor(u), LS_FLOW_ENDLESS);
            add_tensor(j, u, before);
        } else if (!ls_tape_has(j->t, u, before)) {
            ls_flow_edge(&j->flow, at, vertex_of_node(p, p->maker[u]), LS_FLOW_ENDLESS);
            add_node(j, p->maker[u], before);
        }
    }
}

static void build(Joint *j)
{
    const LsProb *p = j->p;
    j->flow = ls_flow_new(j->arena, 2 + p->nt + p->n);
    j->seen = ls_arena_alloc(j->arena, j->flow.n, sizeof *j->seen);
    j->side = ls_arena_alloc(j->arena, j->flow.n, sizeof *j->side);
    j->keep = ls_arena_alloc(j->arena, p->nt + 1u, sizeof *j->keep);
    j->done = ls_arena_alloc(j->arena, p->n + 1u, sizeof *j->done);
    for (uint32_t k = 0; k < j->nidle; k++) {
        ls_flow_edge(&j->flow, LS_FLOW_SOURCE, vertex_of_tensor(j->idle[k].tensor),
                     LS_FLOW_ENDLESS);
        add_tensor(j, j->idle[k].tensor, j->idle[k].next);
    }
}

static bool is_dropped(const Joint *j, uint32_t x)
{
    return j->side[vertex_of_node(j->p, j->p->maker[x])];
}

/* The bytes at the run that are dropped where keeping all costs `price` steps. */
static int64_t choose(Joint *j, double price)
{
    int64_t bytes = 0;
    for (uint32_t k = 0; k < j->nkeep; k++)
        ls_flow_set(&j->flow, j->keep[k].edge, 1 + (int64_t)(GRID * price * j->keep[k].part));
    ls_flow_cut(&j->flow, j->side);
    for (uint32_t k = 0; k < j->nidle; k++)
        bytes += is_dropped(j, j->idle[k].tensor) ? j->p->size[j->idle[k].tensor] : 0;
    return bytes;
}

/* ---- the change ---- */

/* Runs v again in front of the run, behind what of its operands is made again too. */
static void make(Joint *j, uint32_t v, uint32_t before)
{
    const LsProb *p = j->p;
    if (j->done[v])
        return;
    j->done[v] = true;
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
        if (j->side[vertex_of_node(p, p->maker[p->in.id[k]])])
            make(j, p->maker[p->in.id[k]], before);
    ls_moves_run_again(j->m, v, before);
}

/* Makes what the cut drops again, each just before it is read; what nobody needs then goes, even a
 * run that was to read something. */
static void apply(Joint *j)
{
    memset(j->done, 0, j->p->n * sizeof *j->done);
    for (uint32_t k = 0; k < j->nidle; k++) {
        Idle i = j->idle[k];
        if (is_dropped(j, i.tensor) && j->t->run[i.next].node == i.node)
            make(j, j->p->maker[i.tensor], i.next);
    }
}

/* The price with the least energy behind it, or 0. */
static double find_price(Joint *j, double weight)
{
    enum { PRICES = 12 };
    double least = ls_moves_energy(j->m, weight), price = 1.0 / 64, best = 0;
    uint32_t mark = j->t->nchange;
    int64_t before = 0;
    for (int k = 0; k < PRICES; k++, price *= 2.2) {
        int64_t bytes = choose(j, price);
        if (bytes == before)
            continue;
        before = bytes;
        apply(j);
        double then = ls_moves_energy(j->m, weight);
        if (j->t->bad == 0 && then < least) {
            least = then;
            best = price;
        }
        ls_tape_undo(j->t, mark);
    }
    return best;
}

bool ls_move_relieve_jointly(LsMoves *m, uint32_t run, double weight)
{
    Joint j = {.m = m, .t = m->t, .p = m->p, .arena = ls_arena_new(), .run = run};
    double price = 0;
    if (ls_tape_peak(m->t) > m->target) {
        count_high(&j);
        find_idle(&j);
        build(&j);
        price = find_price(&j, weight);
    }
    if (price > 0) {
        choose(&j, price);
        apply(&j);
    }
    *m->t->work += j.flow.work;
    ls_arena_free(j.arena);
    return price > 0;
}

/* ---- in turn with orders ---- */

/* Moves runs until the target is reached. */
static void reorder(LsMoves *m, double weight, double hot, uint32_t moves)
{
    double now = ls_moves_energy(m, weight);
    m->t->nchange = 0;
    for (uint32_t k = 0; k < moves && ls_tape_peak(m->t) > m->target; k++) {
        double left = 1 - (double)k / moves, heat = hot * left * left;
        bool made = ls_move_shift(m) && m->t->bad == 0;
        double then = made ? ls_moves_energy(m, weight) : 0;
        double rise = ls_moves_rise(m, heat);
        if (!made || then - now > rise) {
            ls_tape_undo(m->t, 0);
        } else {
            m->t->nchange = 0;
            now = then;
        }
    }
}

bool ls_moves_make_room(LsMoves *m, double weight, double hot, LsLimit *limit)
{
    enum { ROUNDS = 12, MOVES = 5, PATIENCE = 3 };
    int failures = 0;
    bool over = false;
    for (int k = 0; k < ROUNDS && failures < PATIENCE && !over
                    && ls_tape_peak(m->t) > m->target; k++) {
        uint32_t slot = ls_peak_tree_some(&m->t->tree, m->target, ls_moves_random(m, UINT32_MAX));
        uint32_t run = k % 3 == 0 ? ls_tape_peak_run(m->t) : m->t->at[slot];
        failures += !ls_move_relieve_jointly(m, run, weight);
        reorder(m, weight, hot, MOVES * m->p->n);
        over = ls_moves_out_of_time(m, limit);
    }
    m->t->nchange = 0;
    return !over;
}
