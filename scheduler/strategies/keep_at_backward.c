/* scheduler/strategies/keep_at_backward.c -- what to keep at the turn from forward to backward, by
 * min-cuts.
 *
 * When the first backward node starts, the forward part has run. Each operand of the backward part
 * is kept or recomputed, then each operand of the recomputed nodes, and so on. For a price per kept
 * byte, the best choice is a min-cut:
 *   source -> needed(t)              for every operand t of the backward part
 *   needed(t) -> again(maker of t)   price * bytes of t: cut = kept
 *   again(p) -> sink                 cost of p: cut = recomputed
 *   again(p) -> needed(u)            for every operand u of p
 * A sweep of the price gives the best sets for some amounts of memory, independent of the
 * budget. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/algorithms/max_flow.h"
#include "scheduler/strategies/published_strategies.h"
#include "scheduler/order/run_order.h"
#include "scheduler/graph/backward_start.h"

typedef struct Turn {
    const LsProb *p;
    LsArena *arena;             /* for the arrays and the sequence */
    LsArena *tmp;               /* the pool's, for one choice */
    bool *back;                 /* by node: it is the first backward node or waits for it */
    uint32_t *reads;            /* by tensor: remaining reads by backward nodes */
    bool *kept, *there;         /* by tensor */
    LsSeq seq;
    uint32_t seq_room;
    uint32_t *stack, *mark, stamp;
} Turn;

static uint32_t vertex_of_tensor(uint32_t t) { return 2 + t; }
static uint32_t vertex_of_node(const LsProb *p, uint32_t v) { return 2 + p->nt + v; }

/* The price of a kept byte: made before node `split` of the list, and from there on. At price 1 all
 * bytes together cost as much as running everything. */
typedef struct Price { double early, late; uint32_t split; } Price;

/* Sets u->kept for a price; returns the bytes kept. */
static int64_t choose_kept(Turn *u, Price price)
{
    enum { GRID = 1 << 30 };    /* capacities are multiples of 1 / GRID of the sums */
    const LsProb *p = u->p;
    LsFlow f = ls_flow_new(u->tmp, 2 + p->nt + p->n);
    double cost = 0, bytes = 0;
    for (uint32_t v = 0; v < p->n; v++)
        cost += p->needed[v] && !u->back[v] ? p->cost[v] : 0;
    for (uint32_t t = 0; t < p->nt; t++)
        bytes += (double)p->size[t];
    for (uint32_t v = 0; v < p->n; v++)
        for (uint32_t k = p->in.at[v]; u->back[v] && k < p->in.at[v + 1]; k++)
            if (!u->back[p->maker[p->in.id[k]]])
                ls_flow_edge(&f, LS_FLOW_SOURCE, vertex_of_tensor(p->in.id[k]), LS_FLOW_ENDLESS);
    for (uint32_t v = 0; v < p->n; v++) {
        if (!p->needed[v] || u->back[v])
            continue;
        int64_t again = p->stuck[v] ? LS_FLOW_ENDLESS
                        : 1 + (int64_t)(GRID * (p->cost[v] / (cost > 0 ? cost : 1)));
        ls_flow_edge(&f, vertex_of_node(p, v), LS_FLOW_SINK, again);
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
            ls_flow_edge(&f, vertex_of_node(p, v), vertex_of_tensor(p->in.id[k]), LS_FLOW_ENDLESS);
        for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++) {
            double part = (v < price.split ? price.early : price.late)
                          * (double)p->size[p->out.id[k]] / (bytes > 0 ? bytes : 1);
            ls_flow_edge(&f, vertex_of_tensor(p->out.id[k]), vertex_of_node(p, v),
                         1 + (int64_t)(GRID * part));
        }
    }
    bool *side = ls_arena_alloc(u->tmp, f.n, sizeof *side);
    ls_flow_cut(&f, side);
    int64_t kept = 0;
    for (uint32_t t = 0; t < p->nt; t++) {
        u->kept[t] = p->maker[t] != LS_NO_ID && !u->back[p->maker[t]]
                     && (p->stuck[p->maker[t]]
                         || (side[vertex_of_tensor(t)] && !side[vertex_of_node(p, p->maker[t])]));
        kept += u->kept[t] ? p->size[t] : 0;
    }
    return kept;
}

static void run(Turn *u, uint32_t v)
{
    u->seq.node = ls_arena_grow(u->arena, u->seq.node, u->seq.n, u->seq.n + 1u,
                                sizeof *u->seq.node, &u->seq_room);
    u->seq.node[u->seq.n++] = v;
}

/* Runs, in list order, the nodes needed to recompute t. */
static void make(Turn *u, uint32_t t)
{
    const LsProb *p = u->p;
    uint32_t n = ls_prob_remake(p, t, u->there, u->mark, ++u->stamp, u->stack);
    for (uint32_t k = 0; k < n; k++) {
        run(u, u->stack[k]);
        for (uint32_t j = p->out.at[u->stack[k]]; j < p->out.at[u->stack[k] + 1]; j++)
            u->there[p->out.id[j]] |= p->out.id[j] == t || u->reads[p->out.id[j]] > 0;
    }
}

/* Writes the sequence: forward, then backward in list order. Each missing operand is made just
 * before its first read and held until its last. */
static void just_in_time(Turn *u)
{
    const LsProb *p = u->p;
    u->seq.n = 0;
    memset(u->reads, 0, p->nt * sizeof *u->reads);
    memcpy(u->there, u->kept, p->nt * sizeof *u->there);
    for (uint32_t v = 0; v < p->n; v++) {
        if (p->needed[v] && !u->back[v])
            run(u, v);
        for (uint32_t k = p->in.at[v]; u->back[v] && k < p->in.at[v + 1]; k++)
            u->reads[p->in.id[k]]++;
    }
    for (uint32_t v = 0; v < p->n; v++) {
        if (!u->back[v])
            continue;
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
            if (!u->there[p->in.id[k]])
                make(u, p->in.id[k]);
        run(u, v);
        for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++)
            u->there[p->out.id[k]] = true;
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
            uint32_t t = p->in.id[k];
            bool forward = !u->back[p->maker[t]] && !p->stuck[p->maker[t]];
            if (--u->reads[t] == 0 && forward)
                u->there[t] = false;
        }
    }
    ls_seq_drop_dead(u->tmp, p, &u->seq);
}

/* Offers the best choice for the price; returns the bytes it keeps. */
static int64_t offer_price(LsCandidates *pool, Turn *u, Price price)
{
    const LsProb *p = u->p;
    u->tmp = pool->tmp;                             /* renewed now and then */
    int64_t kept = choose_kept(u, price);
    just_in_time(u);
    LsSeq seq = {ls_arena_alloc(pool->tmp, u->seq.n + p->n + 1u, sizeof *seq.node), u->seq.n};
    memcpy(seq.node, u->seq.node, u->seq.n * sizeof *seq.node);
    ls_seq_place_updates(pool->tmp, p, &seq);
    ls_candidates_offer_moved(pool, p, &seq, "auto");
    return kept;
}

typedef struct Offer { double price; int64_t kept; } Offer;

/* Tries prices between two that keep very different amounts, down to some depth. The gaps that
 * remain come from equal layers, which change sides all at once. These are then split: early layers
 * are recomputed and late layers kept, since recomputing late layers would need its room while most
 * kept values are still live. */
static void refine(LsCandidates *pool, Turn *u, Offer low, Offer high, int depth)
{
    enum { PARTS = 14, LARGE = 3000, VERY = 6000 };
    uint32_t n = pool->prob->n;
    int deepest = n < LARGE ? 5 : n < VERY ? 3 : 2;     /* a flow takes longer on a large graph */
    int64_t top = pool->cand[0].peak, gap = low.kept - high.kept;
    uint32_t parts = (uint32_t)(100 * (double)gap / (double)top);
    if (gap <= 0 || parts == 0)
        return;
    if (depth < deepest) {
        Offer mid = {sqrt(low.price * high.price), 0};
        mid.kept = offer_price(pool, u, (Price){mid.price, mid.price, 0});
        refine(pool, u, low, mid, depth + 1);
        refine(pool, u, mid, high, depth + 1);
        return;
    }
    parts = parts < PARTS ? parts : PARTS;
    for (uint32_t k = 1; k <= parts; k++)
        offer_price(pool, u, (Price){high.price, low.price, n / 2 * k / (parts + 1)});
}

static Turn new_turn(LsArena *arena, const LsProb *p)
{
    Turn u = {.p = p, .arena = arena};
    u.back = ls_arena_alloc(arena, p->n + 1u, sizeof *u.back);
    u.mark = ls_arena_alloc(arena, p->n + 1u, sizeof *u.mark);
    u.stack = ls_arena_alloc(arena, p->n + 1u, sizeof *u.stack);
    u.reads = ls_arena_alloc(arena, p->nt + 1u, sizeof *u.reads);
    u.kept = ls_arena_alloc(arena, p->nt + 1u, sizeof *u.kept);
    u.there = ls_arena_alloc(arena, p->nt + 1u, sizeof *u.there);
    return u;
}

void ls_strategy_closure(LsCandidates *pool, const LsProb *p)
{
    LsArena *arena = ls_arena_new();                /* the pool's is renewed between offers */
    Turn u = new_turn(arena, p);
    if (ls_turn_mark(u.p, u.back)) {
        double low = 1.0 / 1024;
        Offer before = {low, offer_price(pool, &u, (Price){low, low, 0})};
        for (double price = 2 * low; price < 3000; price *= 2) {
            Offer now = {price, offer_price(pool, &u, (Price){price, price, 0})};
            refine(pool, &u, before, now, 0);
            before = now;
        }
    }
    ls_arena_free(arena);
}
