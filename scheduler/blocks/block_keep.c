/* scheduler/blocks/block_keep.c -- see the header.
 *
 * For a price per kept byte the best choice in a range of blocks is a min-cut, as for the whole
 * graph in keep_at_backward.c, except that all inputs of the range are in memory. The needs of the
 * backward part are found by running it: each missing operand is made just before it is read. */
#include "scheduler/blocks/block_keep.h"

#include <string.h>

#include "scheduler/algorithms/max_flow.h"
#include "scheduler/blocks/block_run.h"

/* ---- the price of an option ---- */

typedef struct Range {
    uint32_t from, to;          /* blocks */
    uint32_t first, n;          /* its tensors: made.id[first .. first + n) */
    uint32_t start, nnode;      /* its nodes before the turn: ahead.id[start .. start + nnode) */
} Range;

static Range range_of(const LsBlocks *b, uint32_t from, uint32_t to)
{
    return (Range){from, to, b->made.at[from], b->made.at[to] - b->made.at[from],
                   b->ahead.at[from], b->ahead.at[to] - b->ahead.at[from]};
}

static bool is_inside(const LsBlockWork *w, const Range *r, uint32_t t)
{
    uint32_t place = w->b->place[t];
    return place != LS_NO_ID && place - r->first < r->n;
}

/* Returns the size of tensors that count: those of the range, and those made behind the turn. */
static int64_t weight(const LsBlockWork *w, const Range *r, uint32_t t)
{
    return w->b->place[t] == LS_NO_ID || is_inside(w, r, t) ? w->p->size[t] : 0;
}

/* Returns the bytes of results that take the places of operands without later readers. */
static int64_t in_place(LsBlockWork *w, const Range *r, uint32_t v)
{
    const LsDagNode *node = &w->p->dag->node[v];
    int64_t saved = 0;
    w->stamp++;
    for (uint32_t k = 0; k < node->ninplace && w->p->inplace; k++) {
        LsDagPair pair = node->inplace[k];
        if (w->later[pair.in] || w->taken[pair.in] == w->stamp || w->taken[pair.out] == w->stamp
            || !ls_prob_fits(w->p, pair) || weight(w, r, pair.in) == 0)
            continue;
        w->taken[pair.in] = w->taken[pair.out] = w->stamp;
        saved += w->p->size[pair.out];
    }
    return saved;
}

/* Returns the peak memory while the nodes run; `live` bytes stay after the last. Goes backward from
 * the end, where `later` marks the tensors that stay. */
static int64_t measure(LsBlockWork *w, const Range *r, const uint32_t *node, uint32_t n,
                       int64_t live)
{
    const LsProb *p = w->p;
    int64_t peak = live;
    for (uint32_t s = n; s-- > 0;) {
        uint32_t v = node[s];
        int64_t now = live + p->workspace[v] - in_place(w, r, v);
        for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++) {
            uint32_t t = p->out.id[k];
            if (w->later[t])
                live -= weight(w, r, t);
            else
                now += weight(w, r, t);
            w->later[t] = false;
        }
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
            uint32_t t = p->in.id[k];
            if (w->later[t])
                continue;
            w->later[t] = true;
            live += weight(w, r, t);
            now += weight(w, r, t);
        }
        peak = now > peak ? now : peak;
    }
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t k = p->in.at[node[s]]; k < p->in.at[node[s] + 1]; k++)
            w->later[p->in.id[k]] = false;
    return peak;
}

static int64_t measure_ahead(LsBlockWork *w, const Range *r, const bool *keep, int64_t kept)
{
    const LsBlocks *b = w->b;
    for (uint32_t k = 0; k < r->n; k++)
        w->later[b->made.id[r->first + k]] = keep[k];
    return measure(w, r, b->ahead.id + r->start, r->nnode, kept);
}

static int64_t measure_behind(LsBlockWork *w, const Range *r, LsKeepOption *o)
{
    const LsBlocks *b = w->b;
    int64_t live = 0;
    ls_block_set_kept(w, r->from, r->to, o);
    w->nrun = 0;
    ls_block_run_back(w, r->from, r->to, o->brief);
    for (uint32_t k = 0; k < r->n; k++) {
        w->there[b->made.id[r->first + k]] = true;
        w->left[b->made.id[r->first + k]] = 0;
    }
    for (uint32_t s = 0; s < w->nrun; s++)
        o->again += b->rank[w->run[s]] != LS_NO_ID ? w->p->cost[w->run[s]] : 0;
    for (uint32_t k = b->cross.at[r->from]; k < b->cross.at[r->from + 1]; k++) {
        w->later[b->cross.id[k]] = true;
        live += w->p->size[b->cross.id[k]];
    }
    int64_t peak = measure(w, r, w->run, w->nrun, live);
    for (uint32_t k = b->cross.at[r->from]; k < b->cross.at[r->from + 1]; k++)
        w->later[b->cross.id[k]] = false;
    return peak;
}

/* ---- the choice ---- */

enum { GRID = 1 << 30 };        /* capacities are multiples of 1 / GRID of the sums */

static uint32_t vertex_of_tensor(uint32_t k) { return 2 + k; }
static uint32_t vertex_of_node(const Range *r, uint32_t k) { return 2 + r->n + k; }

/* Returns whether the range keeps the tensor in any case: later blocks read it, or it cannot be
 * recomputed. */
static bool is_forced(const LsBlockWork *w, const Range *r, uint32_t t)
{
    return w->b->reach[t] >= r->to || w->p->stuck[w->p->maker[t]];
}

static int64_t price_of(const LsBlockWork *w, uint32_t t, double price)
{
    return 1 + (int64_t)(GRID * (price * (double)w->p->size[t] / (w->bytes > 0 ? w->bytes : 1)));
}

/* edge[k]: the edge whose capacity is the cost of keeping tensor k. */
static LsFlow new_flow(LsBlockWork *w, const Range *r, LsArena *arena, uint32_t *edge)
{
    const LsProb *p = w->p;
    const LsBlocks *b = w->b;
    LsFlow f = ls_flow_new(arena, 2 + r->n + r->nnode);
    for (uint32_t k = 0; k < r->n; k++) {
        uint32_t t = b->made.id[r->first + k], m = p->maker[t];
        edge[k] = LS_NO_ID;
        if (is_forced(w, r, t))
            continue;
        if (b->reads[t] > 0)
            ls_flow_edge(&f, LS_FLOW_SOURCE, vertex_of_tensor(k), LS_FLOW_ENDLESS);
        edge[k] = ls_flow_edge(&f, vertex_of_tensor(k), vertex_of_node(r, b->rank[m] - r->start),
                               1);
    }
    for (uint32_t j = 0; j < r->nnode; j++) {
        uint32_t v = b->ahead.id[r->start + j];
        ls_flow_edge(&f, vertex_of_node(r, j), LS_FLOW_SINK,
                     1 + (int64_t)(GRID * (p->cost[v] / (w->cost > 0 ? w->cost : 1))));
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
            uint32_t t = p->in.id[k];
            if (is_inside(w, r, t) && !is_forced(w, r, t))
                ls_flow_edge(&f, vertex_of_node(r, j), vertex_of_tensor(b->place[t] - r->first),
                             LS_FLOW_ENDLESS);
        }
    }
    return f;
}

/* Writes the keep set for a price; returns its bytes. */
static int64_t choose(LsBlockWork *w, const Range *r, LsFlow *f, const uint32_t *edge,
                      double price, bool *side, bool *keep)
{
    int64_t kept = 0;
    for (uint32_t k = 0; k < r->n; k++)
        if (edge[k] != LS_NO_ID)
            ls_flow_set(f, edge[k], price_of(w, w->b->made.id[r->first + k], price));
    ls_flow_cut(f, side);
    for (uint32_t k = 0; k < r->n; k++) {
        uint32_t t = w->b->made.id[r->first + k];
        uint32_t maker = vertex_of_node(r, w->b->rank[w->p->maker[t]] - r->start);
        keep[k] = is_forced(w, r, t) || (side[vertex_of_tensor(k)] && !side[maker]);
        kept += keep[k] ? w->p->size[t] : 0;
    }
    return kept;
}

static bool beats(const LsKeepOption *a, const LsKeepOption *b)
{
    return a->kept <= b->kept && a->peak <= b->peak && a->again <= b->again;
}

static void add(LsKeepOptions *all, LsKeepOption o)
{
    uint32_t left = 0;
    for (uint32_t k = 0; k < all->n; k++)
        if (beats(&all->item[k], &o))
            return;
    for (uint32_t k = 0; k < all->n; k++)
        if (!beats(&o, &all->item[k]))
            all->item[left++] = all->item[k];
    all->item[left++] = o;
    all->n = left;
}

LsKeepOptions ls_block_options(LsArena *arena, LsBlockWork *w, uint32_t from, uint32_t to)
{
    enum { PRICES = 17 };
    static const double least = 1.0 / 256;
    const LsBlocks *b = w->b;
    LsArena *scratch = ls_arena_new();
    Range r = range_of(b, from, to);
    uint32_t *edge = ls_arena_alloc(scratch, r.n + 1u, sizeof *edge);
    bool *side = ls_arena_alloc(scratch, 2u + r.n + r.nnode, sizeof *side);
    bool *last = ls_arena_alloc(scratch, r.n + 1u, sizeof *last);
    LsFlow f = new_flow(w, &r, scratch, edge);
    LsKeepOptions all = {ls_arena_alloc(arena, 2 * PRICES, sizeof *all.item), 0};
    double price = least;
    for (int k = 0; k < PRICES; k++, price *= 2) {
        LsKeepOption o = {.keep = ls_arena_alloc(arena, r.n + 1u, sizeof *o.keep)};
        o.kept = choose(w, &r, &f, edge, price, side, o.keep);
        if (k > 0 && memcmp(o.keep, last, r.n * sizeof *last) == 0)
            continue;
        memcpy(last, o.keep, r.n * sizeof *last);
        int64_t ahead = measure_ahead(w, &r, o.keep, o.kept);
        for (int brief = 0; brief < 2; brief++) {
            o.brief = brief;
            o.again = 0;
            o.peak = measure_behind(w, &r, &o);
            o.peak = ahead > o.peak ? ahead : o.peak;
            add(&all, o);
        }
    }
    ls_arena_free(scratch);
    return all;
}

LsKeepOptions ls_block_anew(LsArena *arena, LsBlockWork *w, uint32_t from, uint32_t to)
{
    const LsBlocks *b = w->b;
    Range r = range_of(b, from, to);
    LsKeepOptions all = {ls_arena_alloc(arena, 2, sizeof *all.item), 0};
    bool *keep = ls_arena_alloc(arena, r.n + 1u, sizeof *keep);
    for (uint32_t k = 0; k < r.n; k++)
        keep[k] = w->p->stuck[w->p->maker[b->made.id[r.first + k]]];
    for (int brief = 0; brief < 2; brief++) {
        LsKeepOption o = {.keep = keep, .brief = brief};
        o.peak = measure_behind(w, &r, &o);
        add(&all, o);
    }
    return all;
}

/* Returns the cost of the nodes of the range on which the tensors to keep depend. */
static double cost_of(LsBlockWork *w, const Range *r, const bool *keep)
{
    const LsBlocks *b = w->b;
    const LsProb *p = w->p;
    double cost = 0;
    uint32_t seen = ++w->stamp;
    for (uint32_t k = 0; k < r->n; k++) {
        uint32_t m = p->maker[b->made.id[r->first + k]];
        if (keep[k] && !p->stuck[m])
            w->mark[m] = seen;
    }
    for (uint32_t s = r->start + r->nnode; s-- > r->start;) {
        uint32_t v = b->ahead.id[s];
        if (w->mark[v] != seen)
            continue;
        cost += p->cost[v];
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
            uint32_t m = p->maker[p->in.id[k]];
            if (m != LS_NO_ID && b->rank[m] != LS_NO_ID && b->block[m] >= r->from && !p->stuck[m])
                w->mark[m] = seen;
        }
    }
    return cost;
}

LsPass ls_block_pass(LsBlockWork *w, uint32_t from, uint32_t to)
{
    LsArena *scratch = ls_arena_new();
    Range r = range_of(w->b, from, to);
    bool *keep = ls_arena_alloc(scratch, r.n + 1u, sizeof *keep);
    LsPass pass = {0};
    for (uint32_t k = 0; k < r.n; k++) {
        uint32_t t = w->b->made.id[r.first + k];
        keep[k] = is_forced(w, &r, t);
        pass.kept += keep[k] ? w->p->size[t] : 0;
    }
    pass.peak = measure_ahead(w, &r, keep, pass.kept);
    pass.cost = cost_of(w, &r, keep);
    ls_arena_free(scratch);
    return pass;
}
